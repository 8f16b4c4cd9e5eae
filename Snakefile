# Speculative decoding, measured and proven. From text to tables: fetch, prepare -> tokenizer, train, ngram ->
# sample, overlap, cost, decode -> summarise, tables.
from snakemake.utils import min_version

min_version("9.20")


configfile: "config/config.yaml"


include: "workflow/rules/common.smk"
include: "workflow/rules/data.smk"
include: "workflow/rules/models.smk"
include: "workflow/rules/decode.smk"
include: "workflow/rules/analyse.smk"
include: "workflow/rules/report.smk"


rule all:
    default_target: True
    input:
        table_files(config["study"]),
