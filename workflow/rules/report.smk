# Tables, and what a run says when it ends.


rule tables:
    input:
        summary="results/{study}/summary.parquet",
        code=stage_modules("tables"),
    output:
        table_files("{study}"),
    log:
        "logs/{study}/tables.log",
    benchmark:
        "logs/{study}/tables.tsv"
    conda:
        "../../envs/cpu.yaml"
    params:
        study=subpath(input.summary, parent=True),
    shell:
        "workflow/scripts/hold shared python -m specdec tables --study-dir {params.study:q} > {log} 2>&1"


onsuccess:
    print(f"\nStudy {config['study']} is complete. Its tables, each as .csv, .md and .tex:")
    folder = f"results/{config['study']}/tables"
    for name in sorted(os.listdir(folder)):
        if name.endswith(".md"):
            print(f"  {folder}/{name}")


onerror:
    print(f"\nStudy {config['study']} is not complete. Why, in the last line of each failed job's log:")
    for path in failed_logs(log):
        print(f"  {path}: {last_line(path)}")
    print("Mend it and start again: finished jobs are not repeated.")
