package httpapi

import (
	"fmt"
	"net/http"

	"oda/internal/admission"
)

// access is how much one caller may do, and which web pages may use the interface.
// It is replaced as a whole; a request that has begun keeps the one that it has.
type access struct {
	limits  admission.Limits
	callers *admission.Callers // nil: no limits
	cors    *crossOrigin       // nil: no other origins
	origins *http.CrossOriginProtection
}

// Reload changes the limits of callers, and the origins of web pages that may use
// the interface. If an origin is not valid, nothing changes. What a caller has in
// progress under other limits does not count for the new ones.
func (a *API) Reload(limits admission.Limits, origins []string) error {
	next := &access{limits: limits, origins: http.NewCrossOriginProtection()}
	if a.cfg.Origin != "" {
		if err := next.origins.AddTrustedOrigin(a.cfg.Origin); err != nil {
			return fmt.Errorf("the origin of the archive: %w", err)
		}
	}
	var err error
	if next.cors, err = newCrossOrigin(a.cfg.BasePath, origins, next.origins); err != nil {
		return err
	}
	if before := a.access.Load(); before != nil && before.limits == limits {
		next.callers = before.callers
	} else {
		next.callers = admission.NewCallers(limits)
	}
	a.access.Store(next)
	return nil
}

// CheckOrigins returns what is wrong with the origins of web pages.
func CheckOrigins(origins []string) error {
	_, err := newCrossOrigin("", origins, http.NewCrossOriginProtection())
	return err
}
