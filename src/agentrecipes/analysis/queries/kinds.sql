-- The last evaluation of each run and split, by kind of question.
WITH known AS (
    SELECT run, json_extract_string(stages, '$[#-1].name') AS last_stage FROM runs
),
last AS (
    SELECT e.*
    FROM evaluations AS e LEFT JOIN known ON known.run = e.run
    WHERE e.stage = coalesce(known.last_stage, e.stage)
    QUALIFY row_number() OVER (
        PARTITION BY e.run, e.split, e.mode, e.metric ORDER BY e.iteration DESC, e.stage
    ) = 1
),
entries AS (
    SELECT run, split, mode, metric, stage, iteration, unnest(map_entries("by")) AS entry
    FROM last
)
SELECT run, split, mode, metric, stage, iteration, entry.key AS kind, entry.value AS value
FROM entries
ORDER BY run, split, mode, metric, kind
