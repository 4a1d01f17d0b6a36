package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/pprof"
	"time"

	"oda/internal/serving"
)

// Bounds of the address for operators. A profile may take as long as it is asked to.
const (
	adminConnections = 16
	adminHeaderTime  = 10 * time.Second
	adminIdleTime    = 2 * time.Minute
	adminGrace       = 200 * time.Millisecond
)

// listenAdmin opens the address for operators. Whoever can reach it can look into the
// memory of the process, so it is only for programs of this machine.
func listenAdmin(ctx context.Context, address string) (*serving.Listener, error) {
	listener, err := serving.Listen(ctx, "--admin-listen", address, adminConnections)
	if err != nil {
		return nil, err
	}
	if err := adminExposed(address, listener.Addr()); err != nil {
		return nil, errors.Join(err, listener.Close())
	}
	return listener, nil
}

// adminExposed returns an error if others than the programs of this machine can reach
// the address, which is given as it was written and as it was understood.
func adminExposed(address string, addr net.Addr) error {
	if isLoopback(addr) {
		return nil
	}
	return fmt.Errorf("%s is not a loopback address: --admin-listen shows the inside of the process, also to those who have no role; "+
		"write it as 127.0.0.1:PORT, or leave it out to have the metrics on the main address", address)
}

// serveAdmin serves metrics and profiles until ctx ends.
func serveAdmin(ctx context.Context, listener *serving.Listener, metrics http.Handler, log *slog.Logger) <-chan error {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", metrics)
	mux.HandleFunc("/debug/pprof/", pprof.Index)
	mux.HandleFunc("/debug/pprof/cmdline", pprof.Cmdline)
	mux.HandleFunc("/debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("/debug/pprof/symbol", pprof.Symbol)
	mux.HandleFunc("/debug/pprof/trace", pprof.Trace)
	server := &http.Server{
		Handler: local(mux), ReadHeaderTimeout: adminHeaderTime, ReadTimeout: adminHeaderTime, IdleTimeout: adminIdleTime,
		ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelWarn),
	}
	ended := make(chan error, 1)
	go func() { ended <- serving.Until(ctx, server, listener, adminGrace) }()
	return ended
}

// local lets only those in who call the machine by a name of its own. A web page
// could otherwise lead a browser of this machine here under another name, and read
// the answers.
func local(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		host, _, err := net.SplitHostPort(r.Host)
		if err != nil {
			host = r.Host
		}
		if ip := net.ParseIP(host); host != "localhost" && (ip == nil || !ip.IsLoopback()) {
			http.Error(w, "This address is for programs of this machine. Call it as localhost or 127.0.0.1.", http.StatusForbidden)
			return
		}
		next.ServeHTTP(w, r)
	})
}
