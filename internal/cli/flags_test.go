package cli

import (
	"testing"

	"oda/client"
)

func TestNetworks(t *testing.T) {
	for text, want := range map[string]string{
		"10.0.0.0/24":         "10.0.0.0/24",
		"10.1.2.3/8":          "10.0.0.0/8",
		"10.0.0.7":            "10.0.0.7/32",
		"fd00::1/64":          "fd00::/64",
		"::1":                 "::1/128",
		"fe80::1%eth0":        "fe80::1/128",
		"::ffff:10.0.0.7":     "10.0.0.7/32",
		"::ffff:10.0.0.0/104": "10.0.0.0/8",
		"::ffff:10.0.0.0/24":  "", // meant for IPv4, but 24 bits are none of it
		"10.0.0":              "",
		"":                    "",
	} {
		var got network
		if err := got.UnmarshalText([]byte(text)); (err == nil) != (want != "") || err == nil && got.String() != want {
			t.Errorf("%q: %v, %v", text, got, err)
		}
	}
}

func TestWhatACallerMayDo(t *testing.T) {
	bound := func(telescope, role string) client.BoundRole {
		return client.BoundRole{Telescope: telescope, Role: role}
	}
	for _, c := range []struct {
		role  string
		bound []client.BoundRole
		want  string
	}{
		{"admin", nil, "do everything (admin)"},
		{"recorder", nil, "read and record (recorder)"},
		{"", []client.BoundRole{bound("ska_mid", "editor")}, "read everything; record and store for ska_mid (editor)"},
		{"", []client.BoundRole{bound("ska_mid", "reader")}, "read everything"},
		{
			"reader",
			[]client.BoundRole{bound("ska_low", "recorder"), bound("ska_mid", "editor")},
			"read (reader); record for ska_low (recorder); record and store for ska_mid (editor)",
		},
	} {
		if got := rights(&client.Caller{Role: c.role, Telescopes: c.bound}); got != c.want {
			t.Errorf("%q, %v: %q, want %q", c.role, c.bound, got, c.want)
		}
	}
}
