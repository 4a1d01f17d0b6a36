package metrics

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"oda/internal/admission"
	"oda/internal/engine"
	"oda/internal/feed"
	"oda/internal/measure"
)

// The metrics of an open archive.
var (
	ready = metric("oda_ready", "Whether the archive can be read and written: 1 while /readyz answers 200, else 0.")

	requests = metric("oda_http_requests_total", "Requests that have ended, by operation and class of the status. "+
		"The class gone has those whose client went away; an answer that was cut off is in 5xx.", "operation", "status")
	requestTook = metric("oda_http_request_duration_seconds", "How long requests took from their header to the end of their answer. "+
		"Streams and requests that wait for changes are left out.", "operation", "status")
	problems        = metric("oda_problems_total", "Requests that were answered with a problem, by its type.", "problem")
	connections     = metric("oda_http_connections", "Connections that are open, without those of followers.")
	connectionsMost = metric("oda_http_connections_limit", "Connections that may be open.")
	bodies          = metric("oda_http_bodies_bytes", "Memory that the bodies of requests in progress take.")
	bodiesMost      = metric("oda_http_bodies_limit_bytes", "Memory that they may take.")
	answers         = metric("oda_http_answers_bytes", "Memory that answers under way take, without small ones.")
	answersMost     = metric("oda_http_answers_limit_bytes", "Memory that they may take.")
	answersWaiting  = metric("oda_http_answers_waiting", "Large answers that wait for memory.")
	answersRefused  = metric("oda_http_answers_refused_total", "Large answers that were refused because there was no memory for them.")
	answersCut      = metric("oda_http_answers_cut_total", "Answers that were cut off because their clients took nothing while others waited.")

	working = metric("oda_admission_working", "Requests that the archive works on, by class of work.", "class")
	waiting = metric("oda_admission_waiting", "Requests that wait to be worked on.", "class")
	limit   = metric("oda_admission_limit", "How many it works on at once at the moment; fewer when they take long.", "class")
	shed    = metric("oda_admission_refused_total", "Requests that were refused because there is too much to do.", "class")

	commitTook   = metric("oda_commit_duration_seconds", "How long transactions took until the storage confirmed them.")
	commitShared = metric("oda_commit_requests", "How many requests shared a transaction.")
	commitFailed = metric("oda_commit_failures_total", "Transactions that failed.")

	queued     = metric("oda_queue_length", "Writes that wait in a queue of the engine.", "queue")
	queuedMost = metric("oda_queue_limit", "Writes that may wait in it.", "queue")

	poolUsed   = metric("oda_pool_connections", "Connections to the database that are in use.", "pool")
	poolMost   = metric("oda_pool_connections_limit", "Connections to the database that there may be.", "pool")
	poolWaits  = metric("oda_pool_waits_total", "How often a request had to wait for a connection to the database.", "pool")
	poolWaited = metric("oda_pool_wait_seconds_total", "How long requests have waited for a connection to the database.", "pool")

	cacheHits   = metric("oda_cache_hits_total", "Reads that a cache could answer.", "cache")
	cacheMisses = metric("oda_cache_misses_total", "Reads that it could not answer.", "cache")
	cacheBytes  = metric("oda_cache_bytes", "Memory that a cache takes.", "cache")

	position      = metric("oda_feed_position", "The last position of the log of changes.")
	followers     = metric("oda_feed_followers", "Clients that follow the changes.")
	followersMost = metric("oda_feed_followers_limit", "Clients that may follow the changes.")
	feedDelay     = metric("oda_feed_delay_seconds", "How old changes were when they were sent to followers, the oldest of each round.")

	minted     = metric("oda_identifier_duration_seconds", "How long it took to get a new identifier, with all tries, from the service or the archive itself.", "source")
	mintFailed = metric("oda_identifier_failures_total", "Attempts to get a new identifier that failed.", "source")

	databaseBytes = metric("oda_database_bytes", "Size of the database, without its write-ahead log.")
	logBytes      = metric("oda_wal_bytes", "Size of the write-ahead log of the database.")
	freeBytes     = metric("oda_disk_free_bytes", "Room that is left on the disk of the database.")
	entities      = metric("oda_entities", "Entities in the archive.", "kind")

	recording   = metric("oda_recorders", "Blocks whose recorder has said in the last two minutes what it has not sent yet.")
	lagRecords  = metric("oda_recorder_lag_records", "Records that wait for the archive, as these recorders said last.")
	lagSeconds  = metric("oda_recorder_lag_seconds", "Age of the oldest of these records, as they said last.")
	nanoseconds = float64(time.Second)
)

var described []*prometheus.Desc

func metric(name, help string, labels ...string) *prometheus.Desc {
	d := prometheus.NewDesc(name, help, labels, nil)
	described = append(described, d)
	return d
}

// Describe implements prometheus.Collector.
func (m *Metrics) Describe(to chan<- *prometheus.Desc) {
	for _, d := range described {
		to <- d
	}
}

// found sends what was found out.
type found chan<- prometheus.Metric

func (f found) gauge(d *prometheus.Desc, value float64, labels ...string) {
	f <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, value, labels...)
}

func (f found) counter(d *prometheus.Desc, value float64, labels ...string) {
	f <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, value, labels...)
}

// histogram sends counts of values. Unit is how many of them make one unit of the metric.
func (f found) histogram(d *prometheus.Desc, counts measure.Counts, unit float64, labels ...string) {
	buckets := make(map[float64]uint64, len(counts.Bounds))
	total := int64(0)
	for i, each := range counts.Each {
		if total += each; i < len(counts.Bounds) {
			buckets[float64(counts.Bounds[i])/unit] = uint64(total)
		}
	}
	f <- prometheus.MustNewConstHistogram(d, uint64(total), float64(counts.Sum)/unit, buckets, labels...)
}

// Collect implements prometheus.Collector.
func (m *Metrics) Collect(to chan<- prometheus.Metric) {
	f := found(to)
	s := m.sources.Load()
	if s == nil {
		f.gauge(ready, 0)
		return
	}
	f.requests(s.Interface.Stats())
	f.engine(s.Engine.Stats())
	f.feed(s.Feed.Stats())
	f.minting(s.Minter)
	now, most := s.Connections()
	f.gauge(connections, float64(now))
	f.gauge(connectionsMost, float64(most))
	f.storage(m.storage.look(s, m.log))
}

func (f found) requests(s admission.Requests) {
	for _, o := range s.Operations {
		f.counter(requests, float64(o.Requests), o.Operation, o.Outcome)
		if o.Took != nil {
			f.histogram(requestTook, *o.Took, nanoseconds, o.Operation, o.Outcome)
		}
	}
	for code, n := range s.Problems {
		f.counter(problems, float64(n), string(code))
	}
	f.gauge(bodies, float64(s.Bodies))
	f.gauge(bodiesMost, float64(s.BodiesMost))
	f.gauge(answers, float64(s.Answers.Bytes))
	f.gauge(answersMost, float64(s.Answers.Most))
	f.gauge(answersWaiting, float64(s.Answers.Waiting))
	f.counter(answersRefused, float64(s.Answers.Refused))
	f.counter(answersCut, float64(s.Answers.Cut))
	for _, c := range s.Classes {
		f.gauge(working, float64(c.Working), c.Class)
		f.gauge(waiting, float64(c.Waiting), c.Class)
		f.gauge(limit, float64(c.Limit), c.Class)
		f.counter(shed, float64(c.Refused), c.Class)
	}
	f.gauge(recording, float64(s.Recorders.Blocks))
	f.gauge(lagRecords, float64(s.Recorders.Records))
	f.gauge(lagSeconds, s.Recorders.Seconds)
}

func (f found) engine(s engine.Stats) {
	f.histogram(commitTook, s.Took, nanoseconds)
	f.histogram(commitShared, s.Shared, 1)
	f.counter(commitFailed, float64(s.FailedCommits))
	for _, q := range s.Queues {
		f.gauge(queued, float64(q.Used), q.Name)
		f.gauge(queuedMost, float64(q.Room), q.Name)
	}
	for _, p := range s.Pools {
		f.gauge(poolUsed, float64(p.Used), p.Name)
		f.gauge(poolMost, float64(p.Room), p.Name)
		f.counter(poolWaits, float64(p.Waits), p.Name)
		f.counter(poolWaited, p.Waited.Seconds(), p.Name)
	}
	for _, c := range s.Caches {
		f.cache(c)
		f.gauge(cacheBytes, float64(c.Bytes), c.Name)
	}
	f.gauge(position, float64(s.End))
}

func (f found) cache(c engine.Cache) {
	f.counter(cacheHits, float64(c.Hits), c.Name)
	f.counter(cacheMisses, float64(c.Misses), c.Name)
}

func (f found) feed(s feed.Stats) {
	f.gauge(followers, float64(s.Followers))
	f.gauge(followersMost, float64(s.Most))
	f.histogram(feedDelay, s.Delay, nanoseconds)
}

func (f found) minting(m *Minter) {
	f.histogram(minted, m.took.Read(), nanoseconds, m.source)
	f.counter(mintFailed, float64(m.failed.Load()), m.source)
}

func (f found) storage(l look) {
	if l.ready {
		f.gauge(ready, 1)
	} else {
		f.gauge(ready, 0)
	}
	for kind, n := range l.entities {
		f.gauge(entities, float64(n), kind.Collection())
	}
	if l.storage == nil {
		return
	}
	f.gauge(databaseBytes, float64(l.storage.Bytes))
	if l.storage.Log != nil {
		f.gauge(logBytes, float64(*l.storage.Log))
	}
	if l.storage.Free != nil {
		f.gauge(freeBytes, float64(*l.storage.Free))
	}
	if l.storage.Cache != nil {
		f.cache(*l.storage.Cache)
	}
}
