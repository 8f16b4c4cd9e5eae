# Models: trained here only where no trained one is committed (or retrain is set); n-gram tables always.


rule tokenizer:
    input:
        recipe=lambda w: config["tokenizers"][w.tokenizer]["recipe"],
        data=lambda w: training_text(w, config["tokenizers"][w.tokenizer]["recipe"]),
        code=stage_modules("tokenizer"),
    output:
        "results/{study}/tokenizers/{tokenizer}/tokenizer.json",
    log:
        "logs/{study}/tokenizer/{tokenizer}.log",
    benchmark:
        "logs/{study}/tokenizer/{tokenizer}.tsv"
    priority: 70
    conda:
        "../../envs/cpu.yaml"
    threads: all_cores
    params:
        data=lambda w, input: flags("--data", map(os.path.dirname, input.data)),
        out=subpath(output[0], parent=True),
    shell:
        "workflow/scripts/hold shared python -m specdec tokenizer"
        " --recipe {input.recipe:q} {params.data:q} --out {params.out:q} > {log} 2>&1"


rule train:
    input:
        recipe=lambda w: config["models"][w.model]["recipe"],
        data=lambda w: training_text(w, config["models"][w.model]["recipe"]),
        tokenizer=lambda w: study.tokenizer_file(config, w.model),
        teacher=teacher_files,
        code=stage_modules("train"),
    output:
        multiext(
            "results/{study}/models/{model}/",
            "model.safetensors",
            "config.json",
            "tokenizer.json",
            "training.json",
            "loss.csv",
        ),
    log:
        "logs/{study}/train/{model}.log",
    benchmark:
        "logs/{study}/train/{model}.tsv"
    priority: 60
    conda:
        ENGINE_ENV
    threads: all_cores
    params:
        data=lambda w, input: flags("--data", map(os.path.dirname, input.data)),
        tokenizer=subpath(input.tokenizer, parent=True),
        teacher=lambda w, input: flags("--teacher", map(os.path.dirname, input.teacher[:1])),
        out=subpath(output[0], parent=True),
    shell:
        "workflow/scripts/hold shared python -m specdec train"
        " --recipe {input.recipe:q} {params.data:q} --tokenizer {params.tokenizer:q} {params.teacher:q}"
        " --threads {threads} --out {params.out:q} > {log} 2>&1"


rule ngram:
    input:
        target=lambda w: study.model_files(config, w.target),
        data="results/{study}/data/{task}/train.parquet",
        code=stage_modules("ngram"),
    output:
        "results/{study}/ngrams/{task}/{target}/{kind}.safetensors",
    log:
        "logs/{study}/ngram/{task}/{target}/{kind}.log",
    benchmark:
        "logs/{study}/ngram/{task}/{target}/{kind}.tsv"
    wildcard_constraints:
        kind="unigram|bigram",
    priority: 50
    conda:
        ENGINE_ENV
    params:
        order=lambda w: study.TABLE_KINDS.index(w.kind) + 1,
        target=lambda w: study.model_folder(config, w.target),
        data=subpath(input.data, parent=True),
    shell:
        "workflow/scripts/hold shared python -m specdec ngram"
        " --order {params.order} --target {params.target:q} --task-data {params.data:q} --out {output:q}"
        " > {log} 2>&1"
