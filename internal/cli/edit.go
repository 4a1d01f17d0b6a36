package cli

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"syscall"

	"oda"
	"oda/client"
	"oda/internal/rawjson"
)

// edit changes an entity in an editor.
type edit struct {
	named
	coloring
	acting
}

// Help is what "oda edit --help" says besides the flags.
func (*edit) Help() string {
	return `Opens the document in the editor of $VISUAL or $EDITOR, else in vi. When you leave
the editor, it checks what you wrote, shows what has changed, and stores it. If
somebody else has stored something in the meantime, it shows that too, and asks what
to do. Records of an ExecutionBlock are not shown, and stay as they are.

What you wrote is never lost: if it is not stored, the command says in which file it
is.`
}

// draft is a document that is being edited.
type draft struct {
	*edit
	archive  *client.Client
	kind     oda.Kind
	to       streams
	look     look
	file     string
	base     *client.Document // what the draft follows
	before   []byte           // what is in the file before the editor is called
	conflict bool             // others have stored something meanwhile
	over     bool             // store it as it is, over what others have stored
}

// Run edits until the document is stored, or the person gives up.
func (e *edit) Run(ctx context.Context, archive *client.Client, kind oda.Kind, to streams) error {
	base, err := archive.Get(ctx, kind, e.ID)
	if err != nil {
		return explain(archive, e.ID, err)
	}
	d := &draft{edit: e, archive: archive, kind: kind, to: to, look: e.look(to.err), base: base, before: editable(kind, base.Body)}
	if err := d.begin(); err != nil {
		return err
	}
	for {
		if !d.over {
			if err := d.callEditor(); err != nil {
				return d.keep(exitFailed, "%s: %v", e.ID, err)
			}
		}
		done, err := d.store(ctx)
		if done || err != nil {
			return err
		}
	}
}

// editable returns a document as people edit it: with a value to a line, unless it
// has lines of its own, and without records.
func editable(kind oda.Kind, document []byte) []byte {
	if kind == oda.ExecutionBlock {
		return pretty(withoutRecords(document))
	}
	if bytes.ContainsRune(bytes.TrimSpace(document), '\n') {
		return document
	}
	return pretty(document)
}

const recordsField = "request_responses"

// withoutRecords returns a document without the list of its records.
func withoutRecords(document []byte) []byte {
	out := []byte("{")
	for key, value := range rawjson.Members(document) {
		if string(key) != recordsField {
			out = append(rawjson.AppendQuoted(out, string(key)), ':')
			out = append(append(out, value...), ',')
		}
	}
	return append(bytes.TrimSuffix(out, []byte(",")), '}')
}

func hasMember(document []byte, name string) bool {
	for key := range rawjson.Members(document) {
		if string(key) == name {
			return true
		}
	}
	return false
}

// begin makes the file.
func (d *draft) begin() error {
	f, err := os.CreateTemp("", "oda-"+d.ID+"-*.json")
	if err != nil {
		return fmt.Errorf("%s: make a file to edit: %w", d.ID, err)
	}
	d.file = f.Name()
	_, err = f.Write(d.before)
	if err = errors.Join(err, f.Close()); err != nil {
		return errors.Join(fmt.Errorf("%s: make a file to edit: %w", d.ID, err), os.Remove(d.file))
	}
	return nil
}

// keep returns a failure that says where the draft is.
func (d *draft) keep(exit int, format string, about ...any) error {
	text := fmt.Sprintf(format, about...)
	if now, err := os.ReadFile(d.file); err == nil && bytes.Equal(now, d.before) && !d.conflict {
		_ = os.Remove(d.file) // nothing was written, now or before a conflict
		return &failure{exit, text}
	}
	return &failure{exit, text + "; what you wrote is in " + d.file}
}

// callEditor lets the person edit the file. Ctrl-C is for the editor meanwhile.
func (d *draft) callEditor() error {
	editor := cmp.Or(os.Getenv("VISUAL"), os.Getenv("EDITOR"), "vi")
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGQUIT)
	defer signal.Stop(signals)
	cmd := exec.Command("/bin/sh", "-c", editor+` "$1"`, "sh", d.file) // #nosec G204 -- the editor is the user's, and may have arguments of its own
	cmd.Stdin, cmd.Stdout, cmd.Stderr = d.to.in, d.to.out, d.to.err
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("the editor %q failed (choose another with VISUAL or EDITOR): %w", editor, err)
	}
	return nil
}

// store stores what is in the file. It reports whether there is nothing more to do.
func (d *draft) store(ctx context.Context) (done bool, err error) {
	text, err := os.ReadFile(d.file)
	if err != nil {
		return false, fmt.Errorf("%s: read what you wrote: %w", d.ID, err)
	}
	if bytes.Equal(text, d.before) && !d.over {
		return true, d.unchanged()
	}
	next, err := d.check(text)
	if err != nil {
		if !d.to.terminal() {
			return false, d.keep(exitFailed, "%s: %v; nothing was stored", d.ID, err)
		}
		fmt.Fprintf(d.to.err, "oda: %s. What you wrote is in %s.\n", visibleLines(err.Error()), d.file)
		d.over = false
		if answer := d.to.ask("Edit it again? [Y/n] "); answer != "" && answer != "y" && answer != "yes" {
			return false, d.keep(exitFailed, "%s: nothing was stored", d.ID)
		}
		return false, nil
	}
	if !d.show("what you wrote", next) {
		fmt.Fprintf(d.to.err, "%s: only white space or metadata has changed, so nothing was stored\n", d.ID)
		return true, os.Remove(d.file)
	}
	var options []client.StoreOption
	if d.kind == oda.ExecutionBlock {
		options = append(options, client.KeepRecords())
	}
	err = store(ctx, d.archive, d.to, d.kind, d.ID, next, options...)
	if f, ok := errors.AsType[*failure](err); ok {
		if f.exit == exitConflict {
			return false, d.resolve(ctx, next, f)
		}
		return false, d.keep(f.exit, "%s", f.text)
	}
	if err != nil { // it is stored, but that cannot be printed
		return false, err
	}
	return true, os.Remove(d.file)
}

// unchanged deals with a person who leaves the editor without a change. If others have
// stored something, what the person wrote before is kept.
func (d *draft) unchanged() error {
	if d.conflict {
		return d.keep(exitConflict, "%s: nothing was stored", d.ID)
	}
	fmt.Fprintf(d.to.err, "%s: nothing has changed, so nothing was stored\n", d.ID)
	return os.Remove(d.file)
}

// show shows how what the draft follows becomes another document.
func (d *draft) show(name string, document []byte) (differs bool) {
	from := d.base.Body
	if d.kind == oda.ExecutionBlock {
		from, document = withoutRecords(from), withoutRecords(document)
	}
	return showDiff(d.to.err, d.look, fmt.Sprintf("%s version %d", d.ID, d.base.Metadata.Version), name, from, document)
}

// check returns what the person wrote as it can be stored.
func (d *draft) check(text []byte) ([]byte, error) {
	id, err := identifier(d.kind, text)
	if err != nil {
		return nil, err
	}
	if id != d.ID {
		return nil, fmt.Errorf("the identifier was changed from %s to %s; an identifier cannot change", d.ID, visible(id))
	}
	if d.kind == oda.ExecutionBlock && hasMember(text, recordsField) {
		return nil, fmt.Errorf("%s was added, but records cannot be edited; remove it", recordsField)
	}
	return restated(d.kind, text, d.base.Metadata)
}

// resolve deals with what others have stored since the draft was begun.
func (d *draft) resolve(ctx context.Context, mine []byte, because *failure) error {
	theirs, err := d.archive.Get(ctx, d.kind, d.ID)
	if err != nil {
		return d.keep(exitConflict, "%s", because.text)
	}
	m := theirs.Metadata
	fmt.Fprintf(d.to.err, "\nThat was not stored: %s has changed %s in the meantime, on %s UTC:\n", visible(m.LastModifiedBy), d.ID, when(m.LastModifiedOn))
	if !d.show(fmt.Sprintf("%s version %d", d.ID, m.Version), theirs.Body) {
		fmt.Fprintln(d.to.err, "(only the metadata)")
	}
	if !d.to.terminal() {
		return d.keep(exitConflict, "%s", because.text)
	}
	fmt.Fprintf(d.to.err, "What you wrote is in %s.\n", d.file)
	answer := d.to.ask("[e]dit it again, [s]tore it anyway, over that change, or [q]uit? ")
	if answer == "" || answer[0] != 'e' && answer[0] != 's' {
		return d.keep(exitConflict, "%s: nothing was stored", d.ID)
	}
	next, err := restated(d.kind, mine, m)
	if err != nil {
		return d.keep(exitFailed, "%s: %v", d.ID, err)
	}
	d.base, d.before, d.conflict, d.over = theirs, pretty(next), true, answer[0] == 's'
	if err := os.WriteFile(d.file, d.before, 0o600); err != nil {
		return d.keep(exitFailed, "%s: %v", d.ID, err)
	}
	return nil
}
