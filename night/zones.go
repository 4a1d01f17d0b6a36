package night

import (
	"fmt"
	"strings"
)

// Zones are the time zones in which the nights of an archive and of its telescopes last
// from noon to noon. The zero Zones are UTC.
type Zones struct {
	archive    string // empty: UTC
	telescopes map[string]string
}

// NewZones returns the zones that settings name: "Africa/Johannesburg" for the archive,
// "ska_low=Australia/Perth" for a telescope.
func NewZones(settings []string) (*Zones, error) {
	z := &Zones{telescopes: make(map[string]string)}
	for _, setting := range settings {
		telescope, name, isOne := strings.Cut(setting, "=")
		if !isOne {
			telescope, name = "", setting
		}
		if isOne && telescope == "" {
			return nil, fmt.Errorf("%q names no telescope; write it as ska_low=Australia/Perth", setting)
		}
		if _, known := zoneNamed(name); !known {
			return nil, fmt.Errorf("%q is not the name of a time zone; write it as Africa/Johannesburg, or ska_low=Australia/Perth for a telescope", name)
		}
		if !isOne {
			if z.archive != "" {
				return nil, fmt.Errorf("the archive has two zones, %s and %s; write the zone of a telescope as ska_low=Australia/Perth", z.archive, name)
			}
			z.archive = name
			continue
		}
		if other, twice := z.telescopes[telescope]; twice {
			return nil, fmt.Errorf("%s has two zones, %s and %s; give it one", telescope, other, name)
		}
		z.telescopes[telescope] = name
	}
	return z, nil
}

// Of returns the name of the zone of a telescope, or of the archive.
func (z *Zones) Of(telescope string) string {
	if name := z.telescopes[telescope]; name != "" {
		return name
	}
	if z.archive != "" {
		return z.archive
	}
	return "UTC"
}
