package cli

import "testing"

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
