-- The best run of each algorithm: its last evaluation, on the test split where there is one.
WITH last AS (
    SELECT
        run, metric, mode, split,
        arg_max(value, iteration) AS value,
        arg_max(standard_error, iteration) AS standard_error
    FROM evaluations
    WHERE value IS NOT NULL AND mode = 'sampled'
    GROUP BY ALL
),
ranked AS (
    SELECT
        coalesce(runs.algorithm, '?') AS algorithm, last.metric, last.run, last.split,
        last.value, last.standard_error,
        row_number() OVER (
            PARTITION BY coalesce(runs.algorithm, '?'), last.metric
            ORDER BY last.split = 'test' DESC, last.value DESC, last.run
        ) AS place
    FROM last LEFT JOIN runs ON runs.run = last.run
)
SELECT algorithm, metric, run, split, value, standard_error
FROM ranked WHERE place = 1
ORDER BY algorithm, metric
