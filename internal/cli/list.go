package cli

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"iter"
	"slices"

	"oda/client"
)

// lister prints a list: for people a table, for programs a line for each thing.
type lister[T any] struct {
	look
	header []string
	row    func(T) []cell
	line   func(T) string // for programs, unless they ask for something else
	id     func(T) string
	json   func(T) []byte

	columns []string // as CSV has them; members of what json returns
}

// all prints a list as it arrives, and what explains its error.
func (p *lister[T]) all(out io.Writer, format string, list iter.Seq2[T, error], explain func(error) error) error {
	if format == "auto" && p.people {
		format = "table"
	}
	w := bufio.NewWriter(out)
	write, end := p.lines(w, p.line), w.Flush
	switch format {
	case "table":
		write, end = p.table(w)
	case "id":
		write = p.lines(w, p.id)
	case "json":
		write, end = p.array(w)
	case "yaml":
		write, end = p.yaml(w)
	case "csv":
		t, err := newCSV(w, p.look, p.columns)
		if err != nil {
			return err
		}
		write = func(one T) error { return t.add(p.json(one)) }
	}
	none := true
	for one, err := range list {
		if err != nil {
			if _, ended := errors.AsType[incompleteError](err); !ended && format != "table" { // a list that lacks its end is not closed
				end = w.Flush
			}
			return errors.Join(end(), w.Flush(), explain(err))
		}
		none = false
		if err := write(one); err != nil {
			return err
		}
	}
	if none && format == "table" && p.people {
		w.WriteString("nothing was found\n")
	}
	if err := end(); err != nil {
		return err
	}
	return w.Flush()
}

func (p *lister[T]) lines(w *bufio.Writer, text func(T) string) func(T) error {
	return func(one T) error {
		_, err := w.WriteString(p.safe(text(one)) + "\n")
		return err
	}
}

func (p *lister[T]) table(w *bufio.Writer) (func(T) error, func() error) {
	t := &table{look: p.look, header: p.header}
	return func(one T) error {
			if t.add(p.row(one)...); len(t.rows) < tableRows {
				return nil
			}
			return errors.Join(t.flush(w), w.Flush())
		}, func() error {
			return t.flush(w)
		}
}

// array writes a JSON array. It is closed only if the list is complete.
func (p *lister[T]) array(w *bufio.Writer) (func(T) error, func() error) {
	if p.people { // it is read when it is complete
		return p.gathered(func(text []byte) error { return p.printLines(w, text) })
	}
	before := byte('[')
	return func(one T) error {
			w.WriteByte(before)
			before = ','
			_, err := w.Write(p.json(one))
			return err
		}, func() error {
			if before == '[' {
				w.WriteByte('[')
			}
			_, err := w.WriteString("]\n")
			return err
		}
}

func (p *lister[T]) yaml(w *bufio.Writer) (func(T) error, func() error) {
	return p.gathered(func(text []byte) error { return p.printYAML(w, text) })
}

// gathered prints the list as one JSON array when it is complete.
func (p *lister[T]) gathered(print func([]byte) error) (func(T) error, func() error) {
	all := [][]byte{}
	return func(one T) error {
			all = append(all, p.json(one))
			return nil
		}, func() error {
			return print(slices.Concat([]byte("["), bytes.Join(all, []byte(",")), []byte("]")))
		}
}

// limited ends a list at a limit; 0 is none.
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

// passing gives what a search finds beside what is damaged. It says what that is as it
// comes to it, and in the end that something is missing.
func passing[T any](list iter.Seq2[T, error], say func(error)) iter.Seq2[T, error] {
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

// incompleteError says how many entities are missing in a list that came to its end.
type incompleteError int64

func (e incompleteError) Error() string {
	return fmt.Sprintf("what was found is not complete: %s could not be read", manyOf(int64(e), "entity"))
}
