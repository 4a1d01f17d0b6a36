package report

import (
	"time"

	"oda/bench/machine"
	"oda/bench/measure"
)

// sample is a result in the shape of a real one. Its numbers are made up.
func sample() *Result {
	return &Result{
		Version: "v0.0.0-sample",
		Started: time.Date(2026, 1, 7, 22, 30, 0, 0, time.UTC),
		Took:    43*time.Minute + 12*time.Second,
		Machine: machine.Description{
			CPU: "Sample CPU at 2.5 GHz", Cores: 2, MemoryBytes: 8 << 30, Kernel: "6.1.0", OS: "Debian 12",
			Disk: "ext4 on a virtual disk", Go: "go1.26", Postgres: "15.14",
			FsyncP50: 812 * time.Microsecond, FsyncP99: 3400 * time.Microsecond, Load1: 0.4,
		},
		Peers: map[string]string{"PocketBase": "v0.30.0", "Kinto": "19.0.0"},
		Budgets: []Budget{
			{Work: "GET one entity, 5 KB", Engine: "SQLite", Measured: "of bare", Limit: 0.6, Value: spreadOf(0.83, 0.79, 0.88)},
			{Work: "GET one entity, 5 KB", Engine: "SQLite", Measured: "× PocketBase", Limit: 7, Value: spreadOf(9.2, 8.8, 9.9)},
			{Work: "GET one entity, 5 KB", Engine: "PostgreSQL", Measured: "of pgbench", Limit: 0.35, Value: spreadOf(0.52, 0.41, 0.61)},
			{Work: "record one request/response", Engine: "SQLite", Measured: "of bare", Limit: 0.33, Value: spreadOf(0.36, 0.32, 0.41)},
			{
				Work: "record one request/response", Engine: "PostgreSQL", Measured: "of pgbench", Limit: 1, Value: spreadOf(0.74, 0.62, 1.08),
				Note: "Two cores are shared with the server; see the profile.",
			},
			{Work: "recording at 100,000 records ÷ at 10", Engine: "SQLite", AtMost: true, Limit: 1.2, Value: spreadOf(0.98, 0.93, 1.04)},
			{Work: "listing 1,000,000 identifiers", Engine: "SQLite", Unit: "/s", Limit: 300_000, Value: spreadOf(1_412_000, 1_380_000, 1_433_000)},
			{Work: "listing 1,000,000 identifiers", Engine: "SQLite", Measured: "of memory growth", Unit: "B", AtMost: true, Limit: 32 << 20, Value: spreadOf(5.4*(1<<20), 4.9*(1<<20), 7*(1<<20))},
			{Work: "start with 1,000,000 entities", Engine: "PostgreSQL", Unit: "s", AtMost: true, Limit: 0.3, Value: spreadOf(0.112, 0.098, 0.131)},
			{Work: "idle memory", Engine: "both", Unit: "B", AtMost: true, Limit: 40 << 20},
		},
		Sections: []Section{
			{
				ID: "get", Title: "GET by identifier",
				Text: []string{"One entity of 5 KB, out of a hot set that fits the cache. Closed loop, 64 connections."},
				Tables: []Table{{
					Title:   "64 connections",
					Columns: []string{"arm", "requests/s", "of bare", "p50", "p99"},
					Rows: [][]string{
						{"bare", "52,100 (50,300–53,000)", "1", "1.10 ms", "3.20 ms"},
						{"oda, SQLite | WAL", "43,200 (41,000–44,800)", "0.83 (0.79–0.88)", "1.40 ms", "4.10 ms"},
					},
				}},
				Plots: []Plot{{
					ID: "get-rate", Title: "GET one entity of 5 KB", YLabel: "requests per second, 64 connections; longer is better", Headline: true,
					Bars: []Bar{
						{Name: "bare", Y: 52_100, Low: 50_300, High: 53_000},
						{Name: "oda on SQLite", Y: 43_200, Low: 41_000, High: 44_800, Note: "0.83 of bare", Highlight: true},
						{Name: "oda on PostgreSQL", Y: 11_900, Low: 10_100, High: 13_600, Note: "0.52 of pgbench", Highlight: true},
						{Name: "pgbench", Y: 22_700, Low: 21_000, High: 23_900},
						{Name: "PocketBase", Y: 4_700, Low: 4_420, High: 4_890},
						{Name: "Kinto on PostgreSQL", Y: 412, Low: 388, High: 430},
					},
				}},
				Series: []NamedSeries{{Name: "hot set", Series: []measure.Series{
					{Arm: "oda on SQLite", Samples: []measure.Sample{{
						Operations: 432_000, Failed: 2, FirstFailure: "status 503, expected 200", Elapsed: 10 * time.Second,
						P50: 1400 * time.Microsecond, P99: 4100 * time.Microsecond,
					}}},
				}}},
			},
			{
				ID: "growth", Title: "Recording into a long block",
				Text: []string{"The rate of recording against the number of records that the block already has."},
				Plots: []Plot{{
					ID: "growth-block", Title: "Recording does not slow down with the block", YLabel: "records per second; higher is better",
					XLabel: "records already in the block", LogX: true, LogY: true,
					Lines: []Line{
						line("oda on SQLite", 10, 10, 18200, 18100, 18400, 17900, 18000, 17800),
						line("oda on PostgreSQL", 10, 10, 7400, 7300, 7450, 7300, 7380, 7290),
						line("rewriting the block", 10, 10, 2100, 1400, 310, 34, 3.2),
					},
				}},
			},
			{
				ID: "open", Title: "How long callers wait",
				Text: []string{"Open loop: records at a fixed rate."},
				Plots: []Plot{{
					ID: "open-latency", Title: "Time to record, by rate", YLabel: "p99 in an open loop; lower is better", Unit: "s", LogY: true,
					XLabel: "records per second",
					Lines: []Line{
						line("oda on SQLite", 1000, 0, .0021, .0023, .0024, .0031, .0042, .0058, .0081, .019, .044, .31),
						line("oda on PostgreSQL", 1000, 0, .0034, .0039, .0052, .011, .092, 1.2),
						{Name: "bare", Reference: true, Points: []Point{{X: 1000, Y: .0004}, {X: 5000, Y: .0006}, {X: 10000, Y: .0009}}},
					},
				}},
			},
		},
	}
}

func spreadOf(median, low, high float64) measure.Spread {
	return measure.Spread{Median: median, Low: low, High: high}
}

// line has a point at first, then at first × factor, and so on; with factor 0,
// at 2 × first, 3 × first and so on. Its spread is a tenth to both sides.
func line(name string, first, factor float64, values ...float64) Line {
	l := Line{Name: name}
	x := first
	for _, y := range values {
		l.Points = append(l.Points, Point{X: x, Y: y, Low: y * 0.9, High: y * 1.1})
		if factor == 0 {
			x += first
		} else {
			x *= factor
		}
	}
	return l
}
