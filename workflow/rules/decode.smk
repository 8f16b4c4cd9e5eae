# Everything that runs models: the target's own samples, alpha on them, the cost of each model, and the cells.


rule sample:
    input:
        target=lambda w: study.model_files(config, w.target),
        data="results/{study}/data/{task}/test.parquet",
        code=stage_modules("sample"),
    output:
        "results/{study}/samples/{task}/{target}/t{temperature}.parquet",
    log:
        "logs/{study}/sample/{task}/{target}/t{temperature}.log",
    benchmark:
        "logs/{study}/sample/{task}/{target}/t{temperature}.tsv"
    priority: 40
    conda:
        ENGINE_ENV
    threads: config["engine"]["threads"]
    params:
        target=lambda w: study.model_folder(config, w.target),
        data=subpath(input.data, parent=True),
        tokens=config["alpha_tokens"],
        seed=config["seed"],
        limits=limit_options,
        engine=engine_options(),
        filters=filter_options(),
    shell:
        "workflow/scripts/hold shared python -m specdec sample"
        " --target {params.target:q} --task-data {params.data:q} --split test"
        " --temperature {wildcards.temperature} {params.filters} --tokens {params.tokens} {params.limits}"
        " --seed {params.seed} {params.engine} --out {output:q} > {log} 2>&1"


rule overlap:
    input:
        target=lambda w: study.model_files(config, w.target),
        drafts=all_draft_files,
        samples=lambda w: study.sample_files(config, w.task),
        code=stage_modules("overlap"),
    output:
        "results/{study}/overlap/{task}/{target}.parquet",
    log:
        "logs/{study}/overlap/{task}/{target}.log",
    benchmark:
        "logs/{study}/overlap/{task}/{target}.tsv"
    priority: 30
    conda:
        ENGINE_ENV
    threads: config["engine"]["threads"]
    params:
        target=lambda w: study.model_folder(config, w.target),
        samples=lambda w, input: flags("--samples", input.samples),
        drafts=draft_specs,
        engine=engine_options(),
        filters=filter_options(),
    shell:
        "workflow/scripts/hold shared python -m specdec overlap"
        " --target {params.target:q} {params.samples:q} {params.drafts:q} {params.filters} {params.engine}"
        " --out {output:q} > {log} 2>&1"


rule cost:
    input:
        target=lambda w: study.model_files(config, w.target),
        drafts=all_draft_files,
        data="results/{study}/data/{task}/test.parquet",
        code=stage_modules("cost"),
    output:
        "results/{study}/cost/{task}/{target}.json",
    log:
        "logs/{study}/cost/{task}/{target}.log",
    benchmark:
        "logs/{study}/cost/{task}/{target}.tsv"
    priority: 20
    conda:
        ENGINE_ENV
    threads: all_cores
    resources:
        timed=1,
    params:
        target=lambda w: study.model_folder(config, w.target),
        data=subpath(input.data, parent=True),
        drafts=draft_specs,
        gamma_max=max(gamma for gammas in config["grid"]["gammas"].values() for gamma in gammas),
        engine=engine_options(),
    shell:
        "workflow/scripts/hold alone python -m specdec cost"
        " --target {params.target:q} --task-data {params.data:q} {params.drafts:q}"
        " --gamma-max {params.gamma_max} {params.engine} --out {output:q} > {log} 2>&1"


rule decode:
    input:
        target=lambda w: study.model_files(config, w.target),
        draft=lambda w: study.draft_files(config, w.task, w.draft),
        data="results/{study}/data/{task}/test.parquet",
        code=stage_modules("decode"),
    output:
        multiext(
            "results/{study}/cells/{task}/{target}/{draft}/t{temperature}-g{gamma}{filters}/",
            "records.parquet",
            "run.json",
        ),
    log:
        "logs/{study}/decode/{task}/{target}/{draft}/t{temperature}-g{gamma}{filters}.log",
    benchmark:
        "logs/{study}/decode/{task}/{target}/{draft}/t{temperature}-g{gamma}{filters}.tsv"
    priority: 10
    conda:
        ENGINE_ENV
    threads: all_cores
    resources:
        timed=1,
    params:
        target=lambda w: study.model_folder(config, w.target),
        data=subpath(input.data, parent=True),
        kind=lambda w: study.draft_kind(w.draft),
        path=lambda w: flags("--draft-path", filter(None, [study.draft_path(config, w.task, w.draft)])),
        examples=lambda w: config["tasks"][w.task]["examples"],
        seed=config["seed"],
        limits=limit_options,
        out=subpath(output[0], parent=True),
        engine=engine_options(),
        filters=filter_options(),
    shell:
        "workflow/scripts/hold alone python -m specdec decode"
        " --task-data {params.data:q} --target {params.target:q} --draft {wildcards.draft:q}"
        " --draft-kind {params.kind} {params.path:q} --gamma {wildcards.gamma}"
        " --temperature {wildcards.temperature} {params.filters} --examples {params.examples}"
        " {params.limits} --seed {params.seed} {params.engine} --out {params.out:q} > {log} 2>&1"
