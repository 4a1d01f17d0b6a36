package httpapi

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"

	"oda"
	"oda/internal/auth"
)

// boundRole is a role that is bound to a telescope.
type boundRole struct {
	Telescope string    `json:"telescope"`
	Role      auth.Role `json:"role"`
}

// whoami answers with who the archive takes the caller for.
func (a *API) whoami(c *call) error {
	answer := struct {
		User       string      `json:"user"`
		Name       *string     `json:"name"`
		Means      auth.Means  `json:"means"`
		Role       *auth.Role  `json:"role"`
		Telescopes []boundRole `json:"telescopes"`
		Ends       *oda.Moment `json:"ends"`
	}{User: cmp.Or(c.user, oda.DefaultUser), Means: c.caller.Means, Telescopes: []boundRole{}}
	most := auth.Admin
	if a.cfg.ReadOnly {
		most = auth.Reader
	}
	for _, telescope := range slices.Sorted(maps.Keys(c.caller.Bound)) {
		answer.Telescopes = append(answer.Telescopes, boundRole{telescope, min(c.caller.Bound[telescope], most)})
	}
	if c.caller.Name != "" {
		answer.Name = &c.caller.Name
	}
	if c.caller.Role >= auth.Reader {
		role := min(c.caller.Role, most)
		answer.Role = &role
	}
	if !c.caller.Ends.IsZero() {
		ends := oda.Moment(oda.InstantOf(c.caller.Ends))
		answer.Ends = &ends
	}
	text, err := json.Marshal(answer)
	if err != nil {
		return err
	}
	return c.sendError(c.respond("application/json", "", held).whole(text))
}
