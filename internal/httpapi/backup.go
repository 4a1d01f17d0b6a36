package httpapi

import (
	"net/http"
	"time"

	"oda"
)

// backup answers with a copy of the whole archive.
func (a *API) backup(c *call) error {
	if a.cfg.Backup == nil {
		return oda.Errorf(oda.NoSuchPath, "There is no backup at this path, because the archive is kept in PostgreSQL, which has its own tools for backups: "+
			"pg_dump and pg_basebackup. docs/backup.md has the commands.")
	}
	if c.telescopes() != nil {
		return oda.Errorf(oda.Forbidden, "A backup has everything in the archive, and your role is bound to telescopes. It takes the role admin without a telescope.")
	}
	defer c.aside(0)()
	c.head("Content-Type", "application/octet-stream")
	c.head("Content-Disposition", `attachment; filename="oda-`+time.Now().UTC().Format("2006-01-02T150405Z")+`.backup"`)
	c.head("Cache-Control", "no-store")
	if c.r.Method == http.MethodHead {
		c.WriteHeader(http.StatusOK)
		return nil
	}
	return c.sendError(a.cfg.Backup(c.r.Context(), &patient{call: c, control: http.NewResponseController(c.ResponseWriter)}))
}

// patient lets an answer take as long as it needs while its client keeps reading.
type patient struct {
	*call
	control *http.ResponseController
}

// Write sends a part of the answer.
func (p *patient) Write(part []byte) (int, error) {
	// If setting the deadline fails, the answer only ends sooner.
	_ = p.control.SetWriteDeadline(time.Now().Add(p.api.cfg.WriteTimeout))
	return p.call.Write(part)
}
