package demo

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"
)

// Where the functions are that a script calls.
const (
	devices  = "ska_oso_scripting.functions.devicecontrol."
	pointing = "ska_oso_scripting.functions.pointing."
	monitor  = "ska_oso_scripting.functions.monitoring."
)

// script makes up the calls of an observation, as a control script makes them.
type script struct {
	*rand.Rand
	definition *definition
	subarray   int
	steady     bool      // comes to its end
	at         time.Time // of the next call
	calls      []record
}

// observe makes the calls of a whole observation, about as many as wanted, and
// tells whether it had to be given up.
func (s *script) observe(wanted int) (calls []record, aborted bool) {
	doomed := s.IntN(12) == 0 && !s.steady
	s.call(devices+"assign_resources", s.seconds(4, 15), "<ObsState.IDLE: 2>", "receptors", s.receptors())
	scans := s.definition.scans()
	per := max(0, (wanted-3)/max(1, len(scans))-2) // besides configure and scan
	for i, one := range scans {
		if i > 0 && len(s.calls)+4 > wanted {
			break
		}
		s.pause(500*time.Millisecond, 4*time.Second)
		if !s.configure(one) || doomed && i == len(scans)-1 {
			s.giveUp()
			aborted = true
			break
		}
		s.scan(one, per)
	}
	if !aborted {
		s.pause(time.Second, 5*time.Second)
		s.call(devices+"end", s.seconds(1, 3), "<ObsState.IDLE: 2>")
		s.call(devices+"release_all_resources", s.seconds(2, 6), "<ObsState.EMPTY: 0>")
	}
	slices.SortStableFunc(s.calls, func(a, b record) int { return a.Sent.Compare(*b.Sent) })
	return s.calls, aborted
}

// configure prepares a scan. If that fails, it tries once more.
func (s *script) configure(one scan) bool {
	for range 2 {
		if s.IntN(25) != 0 || s.steady {
			s.call(devices+"configure", s.seconds(6, 30), "<ObsState.READY: 4>", "scan_definition_id", one.ID, "csp_configuration", one.CSP)
			return true
		}
		s.fail(devices+"configure", s.seconds(30, 60), 0, "scan_definition_id", one.ID)
		s.pause(2*time.Second, 20*time.Second)
	}
	return false
}

// scan takes data, and watches the receptors meanwhile: their calls overlap
// with the scan and with each other.
func (s *script) scan(one scan, watched int) {
	receptors := s.receptors()
	begin := s.at
	for i, r := range receptors { // all at once
		if i >= watched/2 {
			break
		}
		s.at = begin.Add(time.Duration(s.IntN(40)) * time.Millisecond)
		s.call(pointing+"track", s.seconds(3, 25), "'on source'", "receptor", r, "target", one.Target)
		watched--
	}
	s.at = s.latest().Add(200 * time.Millisecond)
	begin = s.at
	length := time.Duration(one.Duration) * time.Millisecond
	s.call(devices+"scan", length+s.seconds(1, 4), "<ObsState.READY: 4>", "scan_id", 1+s.IntN(90_000), "duration_ms", one.Duration)
	end := s.at
	functions := []string{"read_attitude", "read_system_temperature", "check_packet_rate", "read_wind_speed"}
	for i := range watched {
		s.at = begin.Add(length * time.Duration(i) / time.Duration(watched)).Add(time.Duration(s.IntN(300)) * time.Millisecond)
		function, receptor := monitor+functions[s.IntN(len(functions))], receptors[i%len(receptors)]
		if s.IntN(150) == 0 {
			s.fail(function, s.seconds(3, 5), 1+s.IntN(2), "receptor", receptor)
		} else {
			s.call(function, time.Duration(8+s.IntN(400))*time.Millisecond, fmt.Sprintf("%.3f", 15+10*s.Float64()), "receptor", receptor)
		}
	}
	s.at = end
}

// giveUp ends an observation that failed. The last call is never answered.
func (s *script) giveUp() {
	s.fail(devices+"scan", s.seconds(5, 90), 3)
	s.call(devices+"abort", s.seconds(1, 4), "<ObsState.ABORTED: 7>")
	s.call(devices+"restart", s.seconds(5, 20), "<ObsState.EMPTY: 0>")
	if s.IntN(2) == 0 {
		s.call(devices+"release_all_resources", time.Second, "")
		last := &s.calls[len(s.calls)-1]
		last.Status, last.Response, last.Received = "", nil, nil
	}
}

func (s *script) receptors() []string {
	if s.definition.Dishes != nil {
		return s.definition.Dishes.Dishes
	}
	names := make([]string, len(s.definition.Stations.Stations))
	for i, n := range s.definition.Stations.Stations {
		names[i] = fmt.Sprintf("low-mccs/station/%d", n)
	}
	return names
}

// call adds a call that succeeds. The next one follows its answer.
func (s *script) call(request string, took time.Duration, result string, kwargs ...any) {
	sent, received := s.at.Truncate(time.Microsecond), s.at.Add(took).Truncate(time.Microsecond)
	s.calls = append(s.calls, record{
		Request: request, Args: s.args(kwargs), Status: "OK", Response: &response{result}, Sent: &sent, Received: &received,
	})
	s.at = received.Add(time.Duration(20+s.IntN(400)) * time.Millisecond)
}

// fail adds a call that fails.
func (s *script) fail(request string, took time.Duration, how int, kwargs ...any) {
	s.call(request, took, "", kwargs...)
	failed := &s.calls[len(s.calls)-1]
	failed.Status, failed.Response = "ERROR", nil
	failed.Error = &failure{faults[how], fmt.Sprintf(trace, request, took.Seconds(), faults[how])}
	if how == 1 { // some say no more than that
		failed.Error.Trace, failed.Received = "", nil
	}
}

// faults are what goes wrong.
var faults = []string{
	"TimeoutError: the subarray did not reach READY; it is still CONFIGURING",
	"ConnectionError: the device does not answer",
	"ValueError: the reading is not a number",
	"DevFailed: the correlator reports a fault: no packets from 3 of its inputs",
}

const trace = `Traceback (most recent call last):
  File "/scripts/allocate_and_observe_sb.py", line 118, in main
    observe(subarray, scan_sequence)
  File "/scripts/allocate_and_observe_sb.py", line 74, in observe
    result = %s(subarray_id, **kwargs)
  File "/app/functions/remote.py", line 203, in call_and_wait
    event = queue.get(timeout=%.1f)
%s`

func (s *script) args(kwargs []any) args {
	all := map[string]any{"subarray_id": s.subarray}
	for i := 0; i < len(kwargs); i += 2 {
		all[kwargs[i].(string)] = kwargs[i+1]
	}
	return args{Args: []any{}, Kwargs: all}
}

// seconds makes up how long something takes.
func (s *script) seconds(least, most float64) time.Duration {
	return time.Duration((least + (most-least)*s.Float64()) * float64(time.Second))
}

func (s *script) pause(least, most time.Duration) {
	s.at = s.at.Add(least + time.Duration(s.Int64N(int64(most-least))))
}

// latest is when the last answer came so far.
func (s *script) latest() time.Time { return end(s.calls, s.at) }
