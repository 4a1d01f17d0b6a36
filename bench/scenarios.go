package main

import (
	"context"
	"fmt"
	"time"
)

// scenario is one section of the report.
type scenario struct {
	name  string // for -only, and in links
	title string
	text  string
	// Scenarios with asked set run only if -only names them.
	asked   bool
	run     func(context.Context, *stage) error
	budgets []budget
}

// plan has the counts and times of a run, so that a full, a quick and a tiny
// run (for tests) differ only in numbers.
type plan struct {
	warm, length time.Duration // of one run of an arm
	rounds       int
	busy         int // connections, unless a scenario says otherwise
	pocketBase   bool
	lengths      []int // records in a block
	prepared     int   // total number of records in blocks of one length
	longBlock    int   // records in the block that is read
	nightBlocks  int   // of the night that is reported
	nightRecords int   // in each of them
	entities     int   // in a large archive
	records      int   // in a very large one
	versions     int   // of an entity whose past is read
	past         int   // records in a block whose past is read
	moved        int   // documents that are exported and imported
	shares       []float64
	idle         time.Duration
	soak         time.Duration // how long a mixed night lasts
}

// The full plan takes about half an hour on two cores, the quick one less than
// two minutes. The quick one is rough: it shows that everything works.
var (
	full = plan{
		warm: time.Second, length: time.Second, rounds: 11, busy: 64, pocketBase: true,
		lengths: []int{10, 100, 1_000, 10_000, 100_000}, prepared: 60_000, longBlock: 10_000, nightBlocks: 200, nightRecords: 1_000,
		entities: 1_000_000, records: 10_000_000, versions: 10_000, past: 100_000, moved: 100_000, shares: []float64{0.1, 0.25, 0.5, 0.75}, idle: time.Second, soak: 10 * time.Minute,
	}
	quick = plan{
		length: 500 * time.Millisecond, rounds: 1, busy: 64,
		lengths: []int{10, 100, 1_000}, prepared: 3_000, longBlock: 1_000, nightBlocks: 20, nightRecords: 100,
		entities: 10_000, records: 100_000, versions: 1_000, past: 10_000, moved: 20_000, shares: []float64{0.25, 0.75}, idle: time.Second, soak: 20 * time.Second,
	}
)

// over names the divisor of a figure.
func over(f figure, arms ...string) column { return column{f, arms} }

// Limits of budgets.
func atLeast(work, arm string, c column, limit float64) budget {
	return budget{work, arm, c, limit, false}
}

func atMost(work, arm string, c column, limit float64) budget {
	return budget{work, arm, c, limit, true}
}

// scenarios returns all scenarios, in the order of the report. The budgets are
// those of the design.
func scenarios() []scenario {
	return []scenario{
		{
			name: "reading", title: "Reading an entity",
			text: fmt.Sprintf("`GET` by identifier of any of %d entities of %d bytes, over %d connections. *pgbench* reads the same row by its key. "+
				"*With a token*, oda knows its callers by their tokens, and each request has one.", hot, documentSize, full.busy),
			run: compare{work: readEntities, pocketBase: pocketRead, pgbench: readScript, token: true}.run,
			budgets: []budget{
				atLeast("GET one entity, 5 KB", onSQLite, over(rate, bare), 0.75),
				atLeast("GET one entity, 5 KB", onSQLite, over(rate, pocketBase), 8),
				atLeast("GET one entity, 5 KB", onPostgres, over(rate, pgbench), 0.55),
				atLeast("GET with a token ÷ without", onSQLite+withToken, over(rate, onSQLite), 0.97),
				atLeast("GET with a token ÷ without", onPostgres+withToken, over(rate, onPostgres), 0.97),
			},
		},
		{
			name: "recording", title: "Recording",
			text: fmt.Sprintf("One request/response of %d bytes in a request, over %d connections, each into a block of its own. *pgbench* inserts the row alone, one in a transaction. "+
				"*Raw SQLite* commits %d records together.", len(record(0)), full.busy, full.busy),
			run: compare{work: recordEach, pocketBase: pocketRecord, pgbench: recordScript, raw: true}.run,
			budgets: []budget{
				atLeast("record one request/response, durable", onSQLite, over(rate, bare), 0.30),
				atLeast("record one request/response, durable", onSQLite, over(rate, pocketBase), 5),
				atLeast("record one request/response, durable", onPostgres, over(rate, pgbench), 0.9),
			},
		},
		{
			name: "failing", title: "Recording calls that failed",
			text: fmt.Sprintf("One record of a call that succeeded or failed in a request, over %d connections, into as many blocks. "+
				"A call that failed is in an index of its own. *Cost* is the inverse of the rate.", full.busy),
			run: inTurn(plain(cost, rate, p50, p99), namedWork{succeeded, recordCalls("eb-good", record)}, namedWork{failed, recordCalls("eb-bad", failure)}),
			budgets: []budget{
				atMost("record a failed call ÷ one that succeeded", onSQLite+failed, over(cost, onSQLite+succeeded), 1.3),
				atMost("record a failed call ÷ one that succeeded", onPostgres+failed, over(cost, onPostgres+succeeded), 1.3),
			},
		},
		{
			name: "quiet", title: "Recording over one quiet connection",
			text: "The same over one connection, with nothing else to do for the server: what a script waits for each call. " +
				"*" + bareRow + "* stands in front of PostgreSQL, and does nothing for a record but insert the row that pgbench inserts: what an archive adds comes on top of it.",
			run: compare{
				connections: 1, work: recordEach, pocketBase: pocketRecord, pgbench: recordScript, raw: true, bareRow: true,
				columns: []column{over(p50), over(p50, bare, rawSQLite), over(p50, bare, pgbench), over(p99), over(p999)},
			}.run,
			budgets: []budget{
				atMost("record over one quiet connection, p50", onSQLite, over(p50, bare, rawSQLite), 1.5),
				atMost("record over one quiet connection, p50", onPostgres, over(p50, bare, pgbench), 2),
			},
		},
		{
			name: "updating", title: "Updating an entity",
			text: fmt.Sprintf("`PUT` of an entity of %d bytes as it was answered the last time, over %d connections. oda compares the metadata and keeps the older version; "+
				"*pgbench* does the same statements without comparing; PocketBase writes over.", documentSize, full.busy),
			run: compare{work: updateEntities, pocketBase: pocketUpdate, pgbench: updateScript}.run,
			budgets: []budget{
				atLeast("update one entity, 5 KB", onSQLite, over(rate, bare), 0.20),
				atLeast("update one entity, 5 KB", onPostgres, over(rate, pgbench), 0.9),
			},
		},
		{
			name: "saying", title: "Saying a status",
			text: fmt.Sprintf("`POST` of a status, over %d connections, beside the `PUT` of entities of %d bytes as above.", full.busy, documentSize),
			run:  inTurn(plain(rate, p50, p99), namedWork{updated, updateEntities}, namedWork{said, sayStatuses}),
			budgets: []budget{
				atLeast("say a status ÷ update one entity, 5 KB", onSQLite+said, over(rate, onSQLite+updated), 1),
				atLeast("say a status ÷ update one entity, 5 KB", onPostgres+said, over(rate, onPostgres+updated), 1),
			},
		},
		{
			name: "creating", title: "Storing a new entity",
			text: fmt.Sprintf("`PUT` of an entity of %d bytes under a new identifier, over %d connections.", documentSize, full.busy),
			run:  compare{work: createEntities, pocketBase: pocketCreate}.run,
		},
		{
			name: "several", title: "Storing several entities at once",
			text: fmt.Sprintf("`PUT /` of %d new entities of %d bytes in one request, over %d connections. Rates count entities, latencies requests.", several, documentSize, fillers),
			run:  compare{connections: fillers, work: createSeveral, each: several}.run,
		},
		{
			name: "batches", title: "Recording in batches",
			text: fmt.Sprintf("%d records in a request, each with its idempotency key, over %d connections. Rates count records, latencies requests.", batchSize, full.busy),
			run:  compare{work: recordBatches, each: batchSize}.run,
		},
		{
			name: "one-block", title: "Recording into one block from many connections",
			text: fmt.Sprintf("%d connections record into one block, so all of them meet at its head.", full.busy),
			run:  compare{work: recordTogether}.run,
		},
		{
			name: "following", title: "Recording while others follow",
			text: fmt.Sprintf("Recording as above, alone and while %[1]d clients have a stream of all changes, in turn. The clients accept gzip, as browsers and Go "+
				"programs do, or not. They share the machine with the server, so they only read what they are sent and do not unpack it. "+
				"*%[1]d streams of a bare server* come from a program without an archive, which sends as much as often. Then how long after the acknowledgement of a record a follower sees it, under the same load.", followers),
			run: runFollowing,
			budgets: []budget{
				atLeast("writers with 100 followers ÷ without", onSQLite+followed, over(rate, onSQLite), 0.97),
				atLeast("writers with 100 followers ÷ without", onPostgres+followed, over(rate, onPostgres), 0.95),
				atMost("a follower's delay behind the acknowledgement, p99", onSQLite+behind, over(p99), 0.020),
				atMost("a follower's delay behind the acknowledgement, p99", onPostgres+behind, over(p99), 0.100),
			},
		},
		{
			name: "lengths", title: "Recording into blocks of any length",
			text: fmt.Sprintf("%d connections add records to one block that has so many already. When it has twice as many, the next block of that length takes its place. "+
				"*Cost* is the inverse of the rate.", lengthConnections),
			run: runLengths,
			budgets: []budget{
				atMost("record at 100,000 records ÷ at 10", onSQLite+at(100_000), over(cost, onSQLite+at(10)), 1.2),
				atMost("record at 100,000 records ÷ at 10", onPostgres+at(100_000), over(cost, onPostgres+at(10)), 1.2),
			},
		},
		{
			name: "long-block", title: "Reading a long block",
			text: fmt.Sprintf("`GET` of a block of %s records, whole, over one connection. Each engine puts it together from its records.", format(float64(full.longBlock), "")),
			run:  compare{connections: 1, work: readBlock, columns: plain(p50, p99, rate), odaOnly: true}.run,
		},
		{
			name: "versions", title: "Reading what was",
			text: fmt.Sprintf("An entity of %d bytes with %s versions, any of them but the current one, by its number and as of an instant, beside the `GET` of other entities of that size. "+
				"And a block with %s records, as it was when it had %d, beside the `GET` of a block that has %d. %d connections.",
				documentSize, format(float64(full.versions), ""), format(float64(full.past), ""), shortRecords, shortRecords, full.busy),
			run: runPast,
			budgets: []budget{
				atMost("an old version at 10,000 versions", onSQLite+oldVersion, over(cost, onSQLite+getEntity), 1.5),
				atMost("an old version at 10,000 versions", onPostgres+oldVersion, over(cost, onPostgres+getEntity), 1.5),
				atMost("as of an instant at 10,000 versions", onSQLite+asOf, over(cost, onSQLite+getEntity), 1.5),
				atMost("as of an instant at 10,000 versions", onPostgres+asOf, over(cost, onPostgres+getEntity), 1.5),
				atMost("an old version at 100,000 records", onSQLite+oldBlock, over(cost, onSQLite+getBlock), 1.5),
				atMost("an old version at 100,000 records", onPostgres+oldBlock, over(cost, onPostgres+getBlock), 1.5),
				atMost("as of an instant at 100,000 records", onSQLite+asOfInBlock, over(cost, onSQLite+getBlock), 1.5),
				atMost("as of an instant at 100,000 records", onPostgres+asOfInBlock, over(cost, onPostgres+getBlock), 1.5),
			},
		},
		{
			name: "night", title: "A mixed night",
			text: fmt.Sprintf("95 %% record, 3 %% read and 2 %% update an entity, over %d connections: first as fast as it goes, then at constant rates, which are shares of what the slowest did. "+
				"A telescope does not wait for the archive, so there a latency counts from when a request was due.", full.busy),
			run: runNight,
		},
		{
			name: "night-report", title: "The report on a night",
			text: fmt.Sprintf("`GET /night` for a night of %s blocks with %s records each, over one connection.", format(float64(full.nightBlocks), ""), format(float64(full.nightRecords), "")),
			run:  compare{connections: 1, work: reportNight, columns: plain(p50, p99, rate), odaOnly: true}.run,
			budgets: []budget{
				atMost("report on a night of 200,000 records in 200 blocks, p50", onSQLite, over(p50), 1),
				atMost("report on a night of 200,000 records in 200 blocks, p50", onPostgres, over(p50), 1),
			},
		},
		{
			name: "large", title: "A large archive",
			text: "An archive is filled with entities of 5,000 bytes, and compared with a small one, whose documents oda on SQLite has in its memory. " +
				"A listing is one answer with all identifiers, from an oda that was just started; *memory* is how far it rose above what it had before. " +
				"A start lasts from the start of the program to the first 200 of `/readyz`.",
			run: runLarge,
			budgets: []budget{
				atLeast("listing 1,000,000 identifiers, by creation", onSQLite+byCreation, over(rate), 1_000_000),
				atLeast("listing 1,000,000 identifiers, by creation", onPostgres+byCreation, over(rate), 700_000),
				atLeast("listing 1,000,000 identifiers, by last modification", onSQLite+byModification, over(rate), 1_000_000),
				atLeast("listing 1,000,000 identifiers, by last modification", onPostgres+byModification, over(rate), 700_000),
				atMost("listing 1,000,000 identifiers, memory growth", onSQLite+byCreation, over(memory), 32<<20),
				atMost("listing 1,000,000 identifiers, memory growth", onPostgres+byCreation, over(memory), 32<<20),
				atMost("listing 1,000,000 identifiers, memory growth", onSQLite+byModification, over(memory), 32<<20),
				atMost("listing 1,000,000 identifiers, memory growth", onPostgres+byModification, over(memory), 32<<20),
				atMost("start on an archive of 1,000,000 entities", onSQLite+", start", over(took), 0.3),
				atMost("start on an archive of 1,000,000 entities", onPostgres+", start", over(took), 0.3),
			},
		},
		{
			name: "search", title: "Searching",
			text: fmt.Sprintf("An archive of %s ExecutionBlocks of 400 bytes. Each search has one filter, which leaves at most 1,000 of them, and asks for the first page of 50 summaries, over one connection.",
				format(float64(full.entities), "")),
			run:     runSearch,
			budgets: searchBudgets(),
		},
		{
			name: "backup", title: "Backup and restore",
			text: "`oda backup` of an archive of a gigabyte that is served, and of one that is stopped, against `cp` of its file and a sync: all of them leave a file that is on disk. " +
				"A backup has a checksum of each part, which both sides compute. Memory is what the server takes more than before.",
			run: runBackup,
			budgets: []budget{
				atLeast("back up an archive that is served", onSQLite, over(moved, copied), 0.5),
				atMost("memory of the server for a backup", onSQLite, over(memory), 32<<20),
			},
		},
		{
			name: "moving", title: "Exporting and importing",
			text: "SBDefinitions of 5,000 bytes, straight from and into a database, as `oda export` and `oda import --preserve` do it; *memory* is the largest that the command took. " +
				"Raw SQLite writes the same rows with the same statements, and COPY writes them into the same tables, both in transactions of the same size.",
			run: runMoving,
			budgets: []budget{
				atLeast("exporting documents of 5 KB", onSQLite+exporting, over(rate), 50_000),
				atLeast("exporting documents of 5 KB", onPostgres+exporting, over(rate), 50_000),
				atLeast("importing straight into a database", onSQLite+importing, over(rate, rawCopy), 0.5),
				atLeast("importing straight into a database", onPostgres+importing, over(rate, copying), 0.5),
				atMost("memory of an export", onSQLite+exporting, over(memory), 100<<20),
				atMost("memory of an export", onPostgres+exporting, over(memory), 100<<20),
				atMost("memory of an import", onSQLite+importing, over(memory), 100<<20),
				atMost("memory of an import", onPostgres+importing, over(memory), 100<<20),
			},
		},
		{
			name: "footprint", title: "Idle memory and size of the program",
			text: "Resident memory a second after a start on an empty archive, and the size of the program.",
			run:  runFootprint,
			budgets: []budget{
				atMost("idle memory", onSQLite, over(memory), 48<<20),
				atMost("idle memory", onPostgres, over(memory), 48<<20),
				atMost("size of the program", onSQLite, over(disk), 40<<20),
			},
		},
		{
			name: "scale", title: "A very large archive", asked: true,
			text: "An archive is filled with records of 284 bytes in blocks of 2,000 to 20,000, in batches of up to 5,000 over 8 connections, each record with its idempotency key. " +
				"It is compared with a small one.",
			run: runScale,
		},
		{
			name: "calls", title: "Finding and counting calls", asked: true,
			text: fmt.Sprintf("An archive of %s calls in blocks of %s, spread over a year; one in a hundred failed. The night has %s blocks with %s calls each.",
				format(float64(full.records), ""), format(callsPerDay, ""), format(float64(full.nightBlocks), ""), format(float64(full.nightRecords), "")),
			run:     runCalls,
			budgets: callBudgets(),
		},
		{
			name: "soak", title: "A mixed night without growth", asked: true,
			text: fmt.Sprintf("On both engines at once, %.0f requests per second read entities, blocks and pages, search and list, and %d writers record, store and update, about 60 times a second. "+
				"At the end, everything that was acknowledged is there, once. "+
				"%d followers stay, and %d more come and go. Each row is a tenth of the time; *per second* counts writes. The run fails if the live heap without caches, goroutines, open files or the log of the server grow from the second third to the last, or if the memory of the process, the write-ahead log or the space per write exceed their bounds.",
				soakRate, soakConnections, soakFollowers, soakVisitors),
			run: runSoak,
		},
	}
}
