-- The best run of each algorithm: its last evaluation, on the test split where there is one.
WITH known AS (
    SELECT run, algorithm, json_extract_string(stages, '$[#-1].name') AS last_stage FROM runs
),
last AS (
    SELECT
        coalesce(known.algorithm, '?') AS algorithm, e.run, e.metric, e.split,
        arg_max(e.value, e.iteration) AS value,
        arg_max(e.standard_error, e.iteration) AS standard_error
    FROM evaluations AS e LEFT JOIN known ON known.run = e.run
    WHERE e.value IS NOT NULL AND e.mode = 'sampled'
        AND e.stage = coalesce(known.last_stage, e.stage)
    GROUP BY ALL
)
SELECT algorithm, metric, run, split, value, standard_error
FROM last
QUALIFY row_number() OVER (
    PARTITION BY algorithm, metric ORDER BY split = 'test' DESC, value DESC, run
) = 1
ORDER BY algorithm, metric
