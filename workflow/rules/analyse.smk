# One row a cell.


rule summarise:
    input:
        cells=[
            f"results/{{study}}/{cell}/{file}"
            for cell in study.cells(config)
            for file in ("records.parquet", "run.json")
        ],
        overlap=[f"results/{{study}}/overlap/{pair}.parquet" for pair in study.pairs(config)],
        cost=[f"results/{{study}}/cost/{pair}.json" for pair in study.pairs(config)],
        samples=[file for task in config["grid"]["tasks"] for file in study.sample_files(config, task)],
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
        cells=flags("--cell", study.cells(config)),
    shell:
        "workflow/scripts/hold shared python -m specdec summarise"
        " --study-dir {params.study:q} {params.cells:q} > {log} 2>&1"
