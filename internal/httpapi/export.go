package httpapi

import (
	"net/http"

	"oda"
)

// exportsAtOnce is how many exports are made at the same time. Each keeps a
// processor busy.
const exportsAtOnce = 2

// export answers with everything in the archive, or a part of it, as one file.
func (a *API) export(c *call) error {
	scope, err := oda.ParseScope(c.query)
	if err != nil {
		return err
	}
	if c.telescopes() != nil {
		return oda.Errorf(oda.Forbidden, "An export has everything in the archive, and your role is bound to telescopes. It takes the role admin without a telescope.")
	}
	select {
	case a.exports <- struct{}{}:
		defer func() { <-a.exports }()
	default:
		return oda.Errorf(oda.Overloaded, "%d exports are being made already. Try again when one of them is done.", exportsAtOnce)
	}
	write, err := a.cfg.Exports.Choose(c.r.Context(), scope)
	if err != nil {
		return err
	}
	defer c.aside(0)()
	c.head("Content-Type", "application/zstd")
	c.head("Content-Disposition", `attachment; filename="export.oda.zst"`)
	c.head("Cache-Control", "no-store")
	if c.r.Method == http.MethodHead {
		c.WriteHeader(http.StatusOK)
		return nil
	}
	return c.sendError(write(c.r.Context(), &patient{call: c, control: http.NewResponseController(c.ResponseWriter)}))
}
