-- The last evaluation of each run and split, by kind of question.
WITH last AS (
    SELECT run, split, mode, metric, "by", stage, iteration
    FROM evaluations
    QUALIFY row_number() OVER (
        PARTITION BY run, split, mode, metric ORDER BY iteration DESC, stage DESC
    ) = 1
),
entries AS (
    SELECT run, split, mode, metric, stage, iteration, unnest(map_entries("by")) AS entry
    FROM last
)
SELECT run, split, mode, metric, stage, iteration, entry.key AS kind, entry.value AS value
FROM entries
ORDER BY run, split, mode, metric, kind
