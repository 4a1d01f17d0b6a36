package cli

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"iter"
	"slices"
	"strings"

	"oda/client"
	"oda/internal/sheet"
)

// printer prints a list as it arrives: for people a table, for programs a line for each
// thing, or what they ask for.
type printer[T any] struct {
	look
	header []string
	ends   bool // as in a table
	row    func(T) []cell

	line func(T) string // for programs that ask for nothing; else the identifier, else the JSON
	id   func(T) string
	json func(T) []byte

	columns []string       // as CSV has them
	flat    func(T) []byte // an object with these members, if the JSON is none

	single bool // JSON and YAML have a text for each thing, instead of one for all
	follow bool // more things come, and nothing waits to be printed
}

// writing writes the things of a list, and the end of the list.
type writing[T any] struct {
	one func(T) error
	end func() error
}

// all prints a list, and what explains its error.
func (p *printer[T]) all(out io.Writer, format string, list iter.Seq2[T, error], explain func(error) error) error {
	if format == "auto" && p.people {
		format = "table"
	}
	w := bufio.NewWriter(out)
	write, err := p.writing(w, format)
	if err != nil {
		return err
	}
	none := !p.follow
	for one, err := range list {
		if err != nil {
			if _, ended := errors.AsType[incompleteError](err); !ended && format != "table" {
				write.end = w.Flush // a list that lacks its end is not closed
			}
			return errors.Join(write.end(), w.Flush(), explain(err))
		}
		none = false
		err := write.one(one)
		if err == nil && p.follow {
			err = w.Flush()
		}
		if err != nil {
			return err
		}
	}
	if none && format == "table" && p.people {
		w.WriteString("nothing was found\n")
	}
	if err := write.end(); err != nil {
		return err
	}
	return w.Flush()
}

// writing returns how to write a list in a format.
func (p *printer[T]) writing(w *bufio.Writer, format string) (writing[T], error) {
	switch {
	case format == "table":
		return p.table(w), nil
	case format == "csv":
		return p.csv(w)
	case format == "markdown":
		return p.markdown(w), nil
	case format == "yaml" && p.single:
		return writing[T]{func(one T) error {
			w.WriteString("---\n")
			return p.printYAML(w, p.json(one))
		}, w.Flush}, nil
	case format == "yaml":
		return p.gathered(func(text []byte) error { return p.printYAML(w, text) }), nil
	case format == "json" && !p.single && p.people: // it is read when it is complete
		return p.gathered(func(text []byte) error { return p.printLines(w, text) }), nil
	case format == "json" && !p.single:
		return p.array(w), nil
	}
	text := func(one T) string { return string(p.json(one)) }
	if format == "id" || format == "auto" && p.id != nil {
		text = p.id
	}
	if format == "auto" && p.line != nil {
		text = p.line
	}
	return writing[T]{func(one T) error {
		_, err := w.WriteString(p.safe(text(one)) + "\n")
		return err
	}, w.Flush}, nil
}

func (p *printer[T]) table(w *bufio.Writer) writing[T] {
	t := &table{look: p.look, header: p.header, ends: p.ends}
	return writing[T]{func(one T) error {
		if t.add(p.row(one)...); !p.follow && len(t.rows) < tableRows {
			return nil
		}
		return errors.Join(t.flush(w), w.Flush())
	}, func() error { return t.flush(w) }}
}

// markdown writes the table of people as one of Markdown.
func (p *printer[T]) markdown(w *bufio.Writer) writing[T] {
	escape := strings.NewReplacer("\\", "\\\\", "|", "\\|", "*", "\\*", "_", "\\_", "`", "\\`", "<", "\\<", "[", "\\[", "#", "\\#")
	line := func(cells []string) { w.WriteString("| " + strings.Join(cells, " | ") + " |\n") }
	line(p.header)
	line(slices.Repeat([]string{"---"}, len(p.header)))
	return writing[T]{func(one T) error {
		var cells []string
		for _, c := range p.row(one) {
			cells = append(cells, escape.Replace(visible(c.text)))
		}
		line(cells)
		return nil
	}, w.Flush}
}

func (p *printer[T]) csv(w *bufio.Writer) (writing[T], error) {
	flat := p.flat
	if flat == nil {
		flat = p.json
	}
	t, err := sheet.NewShown(w, p.columns, p.safe)
	return writing[T]{func(one T) error { return t.Add(flat(one)) }, w.Flush}, err
}

// array writes a JSON array. It is closed only if the list is complete.
func (p *printer[T]) array(w *bufio.Writer) writing[T] {
	before := "["
	return writing[T]{func(one T) error {
		w.WriteString(before)
		before = ","
		_, err := w.Write(p.json(one))
		return err
	}, func() error {
		if before == "[" {
			w.WriteString("[")
		}
		_, err := w.WriteString("]\n")
		return err
	}}
}

// gathered prints the list as one JSON array when it is complete.
func (p *printer[T]) gathered(print func([]byte) error) writing[T] {
	all := [][]byte{}
	return writing[T]{func(one T) error {
		all = append(all, p.json(one))
		return nil
	}, func() error {
		return print(slices.Concat([]byte("["), bytes.Join(all, []byte(",")), []byte("]")))
	}}
}

// limited ends a list after a number of things; 0 is no limit.
func limited[T any](list iter.Seq2[T, error], limit int) iter.Seq2[T, error] {
	if limit <= 0 {
		return list
	}
	return func(yield func(T, error) bool) {
		n := 0
		for one, err := range list {
			if err == nil {
				n++
			}
			if !yield(one, err) || n == limit {
				return
			}
		}
	}
}

// readable yields what a search finds and can be read. It reports what is damaged when it
// comes to it, and at the end that something is missing.
func readable[T any](list iter.Seq2[T, error], say func(error)) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		damaged := int64(0)
		for one, err := range list {
			if a, ok := errors.AsType[*client.Answer](err); ok && a.More() {
				damaged++
				say(err)
			} else if !yield(one, err) {
				return
			}
		}
		if damaged > 0 {
			var none T
			yield(none, incompleteError(damaged))
		}
	}
}

// incompleteError counts the entities that are missing from a list that reached its end.
type incompleteError int64

func (e incompleteError) Error() string {
	return fmt.Sprintf("the results are incomplete: %s could not be read", manyOf(int64(e), "entity"))
}
