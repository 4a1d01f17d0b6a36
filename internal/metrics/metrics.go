// Package metrics shows how an archive does, in the format of Prometheus. It asks the
// parts of the archive for what they have counted when somebody looks; nothing of it
// is on the way of a request.
package metrics

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"regexp"
	"runtime"
	"strings"
	"sync/atomic"
	"syscall"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"oda"
	"oda/internal/admission"
	"oda/internal/engine"
	"oda/internal/feed"
)

// Sources are the parts of an open archive that tell how they do.
type Sources struct {
	Engine    interface{ Stats() engine.Stats }
	Storage   func(context.Context) (engine.Storage, error)
	Entities  func(context.Context) (map[oda.Kind]int64, error)
	Ready     func(context.Context) error
	Interface interface{ Stats() admission.Requests }
	Feed      interface{ Stats() feed.Stats }
	Minter    *Minter

	Connections func() (now, most int)
}

// Metrics are the metrics of one archive.
type Metrics struct {
	registry *prometheus.Registry
	log      *slog.Logger
	sources  atomic.Pointer[Sources]
	storage  storage
}

// New returns the metrics of an archive that is not open yet. The engine is a word,
// such as sqlite.
func New(version, engine string, log *slog.Logger) *Metrics {
	m := &Metrics{registry: prometheus.NewRegistry(), log: log}
	build := prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "oda_build_info", Help: "Always 1; the labels say which program this is, and which engine it uses.",
		ConstLabels: prometheus.Labels{"version": version, "goversion": runtime.Version(), "engine": engine},
	})
	build.Set(1)
	m.registry.MustRegister(build, collectors.NewGoCollector(liveHeap), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}), m)
	return m
}

// liveHeap adds what the last collection of garbage has left. It shows a leak sooner
// than the memory of the process, which goes up and down between collections.
var liveHeap = collectors.WithGoCollectorRuntimeMetrics(collectors.GoRuntimeMetricsRule{Matcher: regexp.MustCompile("^/gc/heap/live:bytes$")})

// Open shows the metrics of the archive from now on.
func (m *Metrics) Open(s Sources) { m.sources.Store(&s) }

// metricErrors logs what goes wrong with metrics, but not that somebody stopped reading them.
type metricErrors struct{ log *slog.Logger }

// Println implements promhttp.Logger.
func (l metricErrors) Println(v ...any) {
	for _, one := range v {
		if err, ok := one.(error); ok && (errors.Is(err, syscall.EPIPE) || errors.Is(err, syscall.ECONNRESET)) {
			return
		}
	}
	l.log.Error("a metric cannot be shown", "error", strings.TrimSpace(fmt.Sprintln(v...)))
}

// Handler answers with the metrics. One that cannot be found out is left out.
func (m *Metrics) Handler() http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{
		ErrorHandling: promhttp.ContinueOnError, ErrorLog: metricErrors{m.log},
	})
}
