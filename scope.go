package oda

// Scope says which entities are exported, each with its whole history. The zero value
// is everything.
type Scope struct {
	Kind    Kind     // only of this kind; 0: of all
	Since   *Instant // only what was stored, recorded into or given a status since
	Project string   // only this Project and what hangs on it
}

// ParseScope parses the parameters of an export.
func ParseScope(params map[string][]string) (Scope, error) {
	p := Params{Values: params}
	var s Scope
	if name, given := p.One("kind"); given {
		var known bool
		if s.Kind, known = KindOf(name); !known {
			p.Fault("kind", "must be one of %s", Collections())
		}
	}
	s.Since = p.Instant("since", true)
	if id, given := p.One("prj_id"); given {
		if s.Project = id; !ValidID(id) {
			p.Fault("prj_id", "is not a valid identifier")
		}
	}
	if err := p.Err("Invalid query"); err != nil {
		return Scope{}, err
	}
	return s, nil
}
