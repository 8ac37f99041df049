-- Reserved time: who held which placement for how long, hour by hour. The rule of metering, in one statement.
--
-- In:  workload_event, and four relations that whoever runs it fills:
--        metered_workload (workload, from_us)   whose time is asked, and from which hour on
--        metered_mark     (writer, number)      which events count: those of a writer up to a number
--        metered_hour     (start_us, end_us)    hours, or parts of hours, which do not overlap
--        metered_beat     (source, until_us)    until when a source that has a heartbeat was alive
--      :until_us  where time that nothing ends is cut.
-- Out: one row for each workload, hour, placement and subject: its microseconds, whole; the placement stands empty
--      where no event had named one yet. first_event, begin_event and end_event are the only events behind the row
--      where intervals is 1.
--
-- An interval runs from a `running` event to the next event of its workload, in the order of (at_us, sequence).
-- `stopped` and `failed` void what follows, until the next `provisioning`. Placement and subject are those of the last
-- event of the same life, at or before the interval, that names a placement: its own admission. A life begins with a
-- `provisioning`.
--
-- Portable: the same text runs on SQLite, PostgreSQL and DuckDB. Integers only, no division, no FULL JOIN.
WITH
told AS (
    SELECT
        e.workload, e.at_us, e.sequence, e.state, e.source, e.is_declared, e.subject, e.placement, w.from_us,
        'event:' || e.writer || '/' || CAST(e.number AS VARCHAR) AS ref,
        SUM(CASE WHEN e.state = 'provisioning' THEN 1 ELSE 0 END) OVER (
            PARTITION BY e.workload ORDER BY e.at_us, e.sequence ROWS UNBOUNDED PRECEDING
        ) AS life
    FROM metered_workload AS w
    CROSS JOIN workload_event AS e
    CROSS JOIN metered_mark AS m
    WHERE e.workload = w.workload AND m.writer = e.writer AND e.number <= m.number
),
judged AS (
    SELECT
        workload, at_us, sequence, state, source, is_declared, subject, placement, from_us, ref, life,
        SUM(CASE WHEN state IN ('stopped', 'failed') THEN 1 ELSE 0 END) OVER (
            PARTITION BY workload, life ORDER BY at_us, sequence ROWS UNBOUNDED PRECEDING
        ) - CASE WHEN state IN ('stopped', 'failed') THEN 1 ELSE 0 END AS ends_before
    FROM told
),
ordered AS (
    SELECT
        workload, at_us, sequence, state, source, is_declared, subject, placement, from_us, ref, life,
        SUM(CASE WHEN placement <> '' THEN 1 ELSE 0 END) OVER (
            PARTITION BY workload, life ORDER BY at_us, sequence ROWS UNBOUNDED PRECEDING
        ) AS placements,
        LEAD(at_us) OVER (PARTITION BY workload ORDER BY at_us, sequence) AS next_us,
        LEAD(ref) OVER (PARTITION BY workload ORDER BY at_us, sequence) AS next_ref
    FROM judged
    WHERE ends_before = 0
),
admitted AS (
    SELECT
        workload, at_us, state, source, is_declared, from_us, ref, next_us, next_ref,
        FIRST_VALUE(placement) OVER admitting AS placement,
        FIRST_VALUE(subject) OVER admitting AS subject,
        FIRST_VALUE(ref) OVER admitting AS admitted_ref
    FROM ordered
    WINDOW admitting AS (PARTITION BY workload, life, placements ORDER BY at_us, sequence)
),
held AS (
    SELECT
        a.workload, a.source, a.placement, a.subject, a.is_declared, a.from_us, a.at_us AS since_us,
        a.admitted_ref AS first_event, a.ref AS begin_event, a.next_ref AS end_event,
        CASE
            WHEN a.next_us IS NOT NULL THEN a.next_us
            WHEN b.until_us IS NOT NULL THEN b.until_us
            WHEN a.is_declared = 1 THEN a.at_us
            ELSE :until_us
        END AS until_us
    FROM admitted AS a
    LEFT JOIN metered_beat AS b ON b.source = a.source
    WHERE a.state = 'running' AND (a.next_us IS NULL OR a.next_us > a.at_us)
),
edges AS (
    SELECT
        i.*, h.start_us AS hour_us,
        CASE WHEN i.until_us < h.end_us THEN i.until_us ELSE h.end_us END - i.since_us AS amount_us
    FROM held AS i
    CROSS JOIN metered_hour AS h
    WHERE h.start_us > i.since_us - 3600000000 AND h.start_us < i.since_us AND h.end_us > i.since_us
    UNION ALL
    SELECT i.*, h.start_us AS hour_us, i.until_us - h.start_us AS amount_us
    FROM held AS i
    CROSS JOIN metered_hour AS h
    WHERE
        h.start_us > i.until_us - 3600000000 AND h.start_us < i.until_us
        AND h.start_us >= i.since_us AND h.end_us > i.until_us
)
-- Hours that one interval fills need no sum: intervals of one workload do not overlap.
SELECT
    i.workload, h.start_us AS hour_us, i.placement, i.subject, i.source, i.is_declared,
    h.end_us - h.start_us AS amount_us, 1 AS intervals, i.first_event, i.begin_event, i.end_event
FROM held AS i
CROSS JOIN metered_hour AS h
WHERE h.start_us >= i.since_us AND h.start_us < i.until_us AND h.end_us <= i.until_us AND h.start_us >= i.from_us
UNION ALL
SELECT
    workload, hour_us, placement, subject, MIN(source), MIN(is_declared), SUM(amount_us),
    COUNT(*), MIN(first_event), MIN(begin_event), MIN(end_event)
FROM edges
WHERE hour_us >= from_us
GROUP BY workload, hour_us, placement, subject
