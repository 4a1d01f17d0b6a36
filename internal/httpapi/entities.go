package httpapi

import (
	"strconv"

	"oda"
	"oda/archive"
	"oda/internal/rawjson"
)

// get answers with the current version of an entity, or with the entity as it was
// at a given time.
func (a *API) get(c *call) error {
	at, err := c.one("at")
	if err != nil {
		return err
	}
	if at != "" {
		return a.getAsOf(c, at)
	}
	e, err := a.cfg.Archive.Get(c.work(), c.ref())
	if err != nil {
		return err
	}
	return c.read(e)
}

// ref returns the entity that the path names.
func (c *call) ref() oda.Ref { return oda.Ref{Kind: c.kind, ID: c.id} }

// read answers with an entity, or with 304 if the client already has it.
func (c *call) read(e *oda.Entity) error {
	asked := condition(c.r.Header)
	if err := (oda.Condition{Match: asked.Match}).Check(e.Ref, &e.Metadata); err != nil {
		return err
	}
	c.lasting = e.Superseded
	if !asked.Holds(&e.Metadata) {
		return c.notModified(e)
	}
	return c.entity(e)
}

// store creates or updates the entity that the path names.
func (a *API) store(c *call) error {
	d, _, err := c.document()
	if err != nil {
		return err
	}
	records, err := c.one("records") // the description allows only keep
	if err != nil {
		return err
	}
	w := archive.Write{User: c.user, Telescopes: c.telescopes(), Condition: condition(c.r.Header), KeepRecords: records != ""}
	e, err := asAllowed(c, w, func(w archive.Write) (*oda.Entity, error) { return a.cfg.Archive.Store(c.r.Context(), c.id, d, w) })
	if err != nil {
		return err
	}
	return c.stored(e)
}

// create stores a new entity under a generated identifier.
func (a *API) create(c *call) error {
	d, text, err := c.document()
	if err != nil {
		return err
	}
	e, err := a.cfg.Archive.Create(c.r.Context(), d, c.write(c.op.ID, text))
	if err != nil {
		return err
	}
	return c.stored(e)
}

// storeSeveral stores entities of mixed kinds, all or none. The answer has the
// shape of the request.
func (a *API) storeSeveral(c *call) error {
	text, index, err := c.documents()
	if err != nil {
		return err
	}
	documents := split(text, index)
	if err := c.announceSeveral(documents); err != nil {
		return err
	}
	entities, err := a.cfg.Archive.StoreAll(c.r.Context(), documents, archive.Write{User: c.user, Telescopes: c.telescopes()})
	if err != nil {
		return err
	}
	c.wroteSeveral(entities)
	w := c.respond("application/json", "", held)
	if err := writeSeveral(w, index.Nodes, entities); err != nil {
		return c.sendError(err)
	}
	return c.sendError(w.close())
}

// split returns the documents of all collections in the body.
func split(text []byte, index rawjson.Index) []*oda.Document {
	var documents []*oda.Document
	nodes := index.Nodes
	for i := 1; i < nodes[0].Next; i = nodes[i].Next {
		kind, _ := oda.KindOf(nodes[i].Name)
		n := 0
		for j := i + 1; j < nodes[i].Next; j = nodes[j].Next {
			pointer := "/" + nodes[i].Name + "/" + strconv.Itoa(n)
			documents = append(documents, oda.NewDocument(kind, text, index, j, pointer))
			n++
		}
	}
	return documents
}

// writeSeveral writes the stored entities by collection, in the order of the
// request.
func writeSeveral(w *response, nodes []rawjson.Node, entities []*oda.Entity) error {
	between := "{"
	for i := 1; i < nodes[0].Next; i = nodes[i].Next {
		open := between + `"` + nodes[i].Name + `":[`
		for j := i + 1; j < nodes[i].Next; j = nodes[j].Next {
			if _, err := w.Write([]byte(open)); err != nil {
				return err
			}
			if _, err := entities[0].WriteTo(w); err != nil {
				return err
			}
			entities = entities[1:]
			open = ","
		}
		if open != "," {
			if _, err := w.Write([]byte(open)); err != nil {
				return err
			}
		}
		between = "],"
	}
	_, err := w.Write([]byte("]}"))
	return err
}
