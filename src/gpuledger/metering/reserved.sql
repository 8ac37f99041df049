-- Reserved time: who held which placement for how long, hour by hour. The rule of metering, in one statement.
--
-- In:  workload_event, and four relations that whoever runs it fills:
--        metered_workload (workload, from_us, since_us, until_us)   whose time is asked, from which hour on, and which of
--                         its events are read: from a `provisioning` at or before from_us, or all; to the first event at
--                         or after the end of the hours, or all
--        metered_mark     (writer, number)      which events count: those of a writer up to a number
--        metered_hour     (start_us, end_us)    whole hours, or their beginnings: each starts with a UTC hour
--        metered_beat     (source, until_us)    until when a source that has a heartbeat was alive
--      :until_us  where time that nothing ends is cut.
-- Out: one row for each workload, hour, placement and subject: its microseconds, whole; the placement stands empty
--      where no event had named one yet. first_event, begin_event and end_event are the only events behind the row
--      where intervals is 1; source is that of the first interval, and is_declared 1 where all of them are declared.
--
-- An interval runs from a `running` event to the next event of its workload, in the order of (at_us, sequence).
-- `stopped` and `failed` void what follows, until the next `provisioning`. Placement and subject are those of the last
-- event of the same life, at or before the interval, that names a placement: its own admission. A life begins with a
-- `provisioning`.
--
-- One sort by workload serves all of it. "The last event that ..." is the greatest of texts that begin with the event's
-- place in the order, 19 digits of time and 11 of sequence; what follows the place says which event it is.
--
-- Portable: the same text runs on SQLite, PostgreSQL and DuckDB. Integers only, no division, no FULL JOIN. Whoever runs
-- it may keep metered_run and metered_amount as relations, and so run its three parts one after the other.
WITH
-- [metered_run] the intervals, numbered
told AS (
    SELECT
        w.workload, w.from_us, e.at_us, e.sequence, e.state, e.source, e.is_declared, e.writer, e.number,
        LEAD(e.at_us) OVER life AS next_us,
        LEAD(e.number) OVER life AS next_number,
        LEAD(e.writer) OVER life AS next_writer,
        FIRST_VALUE(e.subject) OVER life AS first_subject,
        MAX(
            CASE
                WHEN e.state = 'provisioning' THEN
                    CAST(e.at_us + 4000000000000000000 AS VARCHAR) || CAST(e.sequence + 10000000000 AS VARCHAR) || 'begun'
                WHEN e.state IN ('stopped', 'failed') THEN
                    CAST(e.at_us + 4000000000000000000 AS VARCHAR) || CAST(e.sequence + 10000000000 AS VARCHAR) || 'ended'
            END
        ) OVER life AS edge,
        MAX(
            CASE WHEN e.state = 'provisioning' OR e.placement <> '' THEN
                CAST(e.at_us + 4000000000000000000 AS VARCHAR) || CAST(e.sequence + 10000000000 AS VARCHAR)
                || CAST(e.number + 1000000000000000 AS VARCHAR) || e.writer
            END
        ) OVER life AS admission
    FROM metered_workload AS w
    CROSS JOIN workload_event AS e
    CROSS JOIN metered_mark AS m
    WHERE
        e.workload = w.workload AND e.at_us >= w.since_us AND e.at_us <= w.until_us
        AND m.writer = e.writer AND e.number <= m.number
    WINDOW life AS (PARTITION BY w.workload ORDER BY e.at_us, e.sequence ROWS UNBOUNDED PRECEDING)
),
metered_run AS (
    SELECT
        ROW_NUMBER() OVER (ORDER BY t.workload, t.at_us, t.sequence) AS run,
        t.workload, t.source, t.is_declared, t.from_us, t.at_us AS since_us,
        CASE
            WHEN t.next_us IS NOT NULL THEN t.next_us
            WHEN b.until_us IS NOT NULL THEN b.until_us
            WHEN t.is_declared = 1 THEN t.at_us
            ELSE :until_us
        END AS until_us,
        COALESCE(a.placement, '') AS placement,
        COALESCE(a.subject, t.first_subject) AS subject,
        'event:' || COALESCE(a.writer || '/' || CAST(a.number AS VARCHAR), t.writer || '/' || CAST(t.number AS VARCHAR))
            AS first_event,
        'event:' || t.writer || '/' || CAST(t.number AS VARCHAR) AS begin_event,
        'event:' || t.next_writer || '/' || CAST(t.next_number AS VARCHAR) AS end_event
    FROM told AS t
    LEFT JOIN workload_event AS a
        ON a.writer = SUBSTR(t.admission, 47) AND a.number = CAST(SUBSTR(t.admission, 31, 16) AS BIGINT) - 1000000000000000
    LEFT JOIN metered_beat AS b ON b.source = t.source
    WHERE
        t.state = 'running' AND (t.edge IS NULL OR SUBSTR(t.edge, 31) = 'begun')
        AND (t.next_us IS NULL OR t.next_us > t.at_us)
),
-- [metered_amount] the intervals cut at the hours; those that one interval fills need no sum, for intervals of one
-- workload do not overlap. The hour in which an interval begins or ends is worked out, not searched for: engines join
-- by equality at a tenth of the price. What is added before the remainder is whole hours, so that times before 1970
-- have their hour too.
edges AS (
    SELECT
        i.run, i.workload, i.placement, i.subject, i.is_declared, i.from_us, h.start_us AS hour_us,
        CASE WHEN i.until_us < h.end_us THEN i.until_us ELSE h.end_us END - i.since_us AS amount_us
    FROM metered_run AS i
    CROSS JOIN metered_hour AS h
    WHERE
        h.start_us = i.since_us - (i.since_us + 3600000000000000000) % 3600000000
        AND h.start_us < i.since_us AND h.end_us > i.since_us
        AND i.until_us > i.since_us -- begun after the last heartbeat: no time yet, and never less than none
    UNION ALL
    SELECT
        i.run, i.workload, i.placement, i.subject, i.is_declared, i.from_us, h.start_us AS hour_us,
        i.until_us - h.start_us AS amount_us
    FROM metered_run AS i
    CROSS JOIN metered_hour AS h
    WHERE
        h.start_us = i.until_us - (i.until_us + 3600000000000000000) % 3600000000
        AND h.start_us < i.until_us AND h.start_us >= i.since_us AND h.end_us > i.until_us
),
metered_amount AS (
    SELECT i.run, h.start_us AS hour_us, h.end_us - h.start_us AS amount_us, 1 AS intervals, i.is_declared
    FROM metered_run AS i
    CROSS JOIN metered_hour AS h
    WHERE h.start_us >= i.since_us AND h.start_us < i.until_us AND h.end_us <= i.until_us AND h.start_us >= i.from_us
    UNION ALL
    SELECT MIN(run), hour_us, SUM(amount_us), COUNT(*), MIN(is_declared)
    FROM edges
    WHERE hour_us >= from_us
    GROUP BY workload, hour_us, placement, subject
)
-- [rows]
SELECT
    i.workload, a.hour_us, i.placement, i.subject, i.source, a.is_declared,
    a.amount_us, a.intervals, i.first_event, i.begin_event, i.end_event
FROM metered_amount AS a
CROSS JOIN metered_run AS i
WHERE i.run = a.run
