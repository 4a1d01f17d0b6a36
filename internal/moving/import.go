package moving

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"net/http"
	"slices"
	"strings"

	"oda/client"
)

// Preserve brings sources into an archive as they were: versions, users and times are
// kept. A source is an export, a file or a folder of documents, or the address of a
// running archive or of a database of ska-db-oda. Documents of more than maxDocument
// bytes are set aside.
func Preserve(ctx context.Context, sources []string, maxDocument int64, into Loader, report *Report) error {
	groups, err := grouped(ctx, sources, maxDocument)
	if err != nil {
		return err
	}
	for _, g := range groups {
		if g.isExport {
			err = named(g.sources[0], load(ctx, &g, into, maxDocument+addedBytes, report))
		} else {
			err = preserve(ctx, &g, into, report)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// addedBytes is more than an archive adds to a document that is created: its identifier and
// its metadata.
const addedBytes = 4 << 10

// Unpack loads an export into an archive that is only read. That archive takes documents of
// any size that a line can have. Unpack returns how many versions and records it refused.
func Unpack(ctx context.Context, export string, maxDocument int64, into Loader) (aside int64, err error) {
	groups, err := grouped(ctx, []string{export}, maxDocument)
	if err != nil {
		return 0, err
	}
	report := NewReport(nil, func(SetAside) {})
	err = named(export, load(ctx, &groups[0], into, math.MaxInt64, report))
	return report.Aside.Load(), err
}

// group is what is imported together: an export, another archive, or all files of
// documents that follow each other, since the versions of an entity may be in several.
type group struct {
	sources  []string
	isExport bool
	manifest *Manifest // of the export
	isFiles  bool

	maxDocument int64 // bytes; larger ones are set aside
	inParts     bool  // whether a long history may come in parts
}

// grouped puts sources together. It reads every export to its end: if one is damaged,
// nothing is imported.
func grouped(ctx context.Context, sources []string, maxDocument int64) (groups []group, err error) {
	for _, source := range sources {
		g := group{sources: []string{source}, isFiles: isFile(source), maxDocument: maxDocument}
		if g.isFiles {
			g.isExport, err = IsExport(source)
			if errors.Is(err, fs.ErrNotExist) && strings.HasPrefix(source, "sqlite:") {
				err = fmt.Errorf("an archive of oda is moved with an export; make one with \"oda export --db %s\", and import that", source)
			}
			if err == nil && g.isExport {
				g.manifest, err = checkFile(ctx, source, maxLine(maxDocument))
				err = named(source, err)
			}
			if err != nil {
				return nil, err
			}
			g.isFiles = !g.isExport
		}
		if n := len(groups); g.isFiles && n > 0 && groups[n-1].isFiles {
			groups[n-1].sources = append(groups[n-1].sources, source)
		} else {
			groups = append(groups, g)
		}
	}
	return groups, nil
}

// named says which source an error is about.
func named(source string, err error) error {
	if err == nil || !isFile(source) { // the address may contain a password
		return err
	}
	return fmt.Errorf("%s: %w", source, err)
}

func preserve(ctx context.Context, g *group, into Loader, report *Report) error {
	parser, err := newParser()
	if err != nil {
		return err
	}
	l := &loads{ctx: ctx, into: into, source: g.sources[0], report: report}
	g.inParts = true
	err = pipeline(ctx, preparers(), func(ctx context.Context, hand func(*history) error) error {
		return histories(ctx, g, nil, client.EnvironmentToken, report, hand)
	}, func(h *history) (*preserved, error) {
		if h.parts != nil {
			return &preserved{part: h}, nil
		}
		return parser.preserve(h)
	}, func(p *preserved) (err error) {
		if p.part != nil {
			if p, err = parser.preserve(p.part); err != nil {
				return err
			}
		}
		if err := report.setAside(p.aside...); err != nil {
			return err
		}
		report.Read.Add(p.read) // they may come slowly
		report.Present.Add(p.present)
		return l.add(p.entries, 0)
	})
	return l.end(err)
}

// Store stores the documents of sources as new ones: through the interface of an
// archive, which gives them versions and times. Into is called when there is something to
// store. An export must be unpacked first. Documents of more than maxDocument bytes are set
// aside. Token is for archives that are read; if it is nil, they get none.
func Store(ctx context.Context, sources []string, maxDocument int64, into func() (*client.Client, error), report *Report, token func() (string, error),
	unpack func(ctx context.Context, export string) (transport http.RoundTripper, done func(), err error),
) error {
	parser, err := newParser()
	if err != nil {
		return err
	}
	groups, err := grouped(ctx, sources, maxDocument)
	if err != nil {
		return err
	}
	s := &storer{open: into, parser: parser, report: report}
	for _, g := range groups {
		err := s.storeAll(ctx, func(ctx context.Context, emit func(*history) error) error {
			if !g.isExport {
				return histories(ctx, &g, nil, token, report, emit)
			}
			transport, done, err := unpack(ctx, g.sources[0])
			if err != nil {
				return err
			}
			defer done()
			report.unpacked = &unpacked{ctx: ctx, export: &g}
			return histories(ctx, &group{sources: []string{unpackedAddress}, maxDocument: maxDocument}, transport, nil, report, emit)
		})
		report.unpacked = nil
		if err != nil {
			return err
		}
	}
	return nil
}

// unpackedAddress is where an unpacked export answers. No network is involved.
const unpackedAddress = "http://export.invalid"

// isFile reports whether a source is a path.
func isFile(source string) bool { return source != "-" && !strings.Contains(source, "://") }

// isAt reports whether a source is an address with one of these schemes.
func isAt(source string, schemes ...string) bool {
	scheme, _, ok := strings.Cut(source, "://")
	return ok && slices.Contains(schemes, strings.ToLower(scheme))
}

// histories calls emit for the entities of a group of sources.
func histories(ctx context.Context, g *group, transport http.RoundTripper, token func() (string, error), report *Report, emit func(*history) error) error {
	switch source := g.sources[0]; {
	case isPostgres(source):
		database, err := openSKA(ctx, source)
		if err != nil {
			return err
		}
		defer database.close()
		return database.histories(ctx, g.maxDocument, report, emit)
	case isRemote(source):
		archive, err := newRemote(source, g.maxDocument, transport, token)
		if err != nil {
			return err
		}
		return archive.histories(ctx, report, emit)
	case source == "-":
		return errors.New("the standard input cannot be imported, since it is read more than once; write it into a file first")
	case !g.isFiles:
		return errors.New("this address cannot be imported; write one that begins with http://, https:// or postgres://")
	}
	spool, err := newSpool()
	if err != nil {
		return err
	}
	defer spool.close()
	from := &files{g.maxDocument, report, func(f *found) error {
		report.Total.Add(1)
		return spool.add(f)
	}}
	for _, source := range g.sources {
		if err := from.source(ctx, source); err != nil {
			return named(source, err)
		}
	}
	return spool.histories(ctx, g.inParts, emit)
}
