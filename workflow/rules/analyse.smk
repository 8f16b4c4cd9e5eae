# One row a cell.


rule summarise:
    input:
        cells=[
            f"results/{{study}}/cells/{cell}/{file}"
            for cell in study.cells(config)
            for file in ("records.parquet", "run.json")
        ],
        overlap=[f"results/{{study}}/overlap/{pair}.parquet" for pair in study.pairs(config)],
        cost=[f"results/{{study}}/cost/{pair}.json" for pair in study.pairs(config)],
        code=stage_modules("summarise"),
    output:
        "results/{study}/summary.parquet",
    log:
        "logs/{study}/summarise.log",
    benchmark:
        "logs/{study}/summarise.tsv"
    conda:
        "../../envs/cpu.yaml"
    params:
        study=subpath(output[0], parent=True),
    shell:
        "workflow/scripts/hold shared python -m specdec summarise --study-dir {params.study:q} --out {output:q} > {log} 2>&1"
