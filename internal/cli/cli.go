// Package cli is the command line of oda: its commands and their help. A
// command is a struct whose fields are its flags; other packages do the work.
package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"

	"github.com/alecthomas/kong"

	"oda"
	"oda/client"
	"oda/internal/demo"
)

// commands are the commands of oda. Those tagged with reads change nothing, and may
// be suggested for a word that is not a command.
type commands struct {
	Serve   serve         `cmd:"" help:"Serve an archive over HTTP."`
	Verify  verify        `cmd:"" reads:"" help:"Check that an archive is whole: that everything is what was stored, and nothing is missing."`
	Backup  backUp        `cmd:"" help:"Copy an archive of the embedded engine to a file, even while it is served."`
	Restore restore       `cmd:"" help:"Make an archive from a backup."`
	Doctor  examine       `cmd:"" reads:"" help:"Look for everything that can be wrong with an archive, and say what to do."`
	Export  export        `cmd:"" help:"Write everything in an archive, or a part of it, into one file."`
	Import  importing     `cmd:"" help:"Import documents into an archive: from an export, files or another archive."`
	Skuid   skuids        `cmd:"" help:"Serve identifiers over HTTP, for archives with --skuid-url."`
	Config  config        `cmd:"" reads:"" help:"Check and show the settings of \"oda serve\"."`
	Token   tokens        `cmd:"" help:"Make, list and revoke the tokens of callers."`
	Record  spool         `cmd:"" reads:"" help:"Inspect a spool, and send the records that wait in it."`
	Demo    demonstration `cmd:"" help:"Fill an archive with a made-up week of observations, to try it out."`
	Version version       `cmd:"" reads:"" help:"Print the version, like --version."`
	Helping helping       `cmd:"" name:"help" reads:"" help:"Print the help of a command, like --help after it."`

	Completion completion `cmd:"" reads:"" help:"Print the completion script for a shell."`
	Complete   complete   `cmd:"" hidden:""`
	Man        manual     `cmd:"" hidden:""`

	Sbds    entities              `cmd:"" group:"Entities" reads:"" help:"Read, find and store SBDefinitions."`
	Sbis    entities              `cmd:"" group:"Entities" reads:"" help:"Read, find and store SBInstances."`
	Ebs     blocks                `cmd:"" group:"Entities" reads:"" help:"Read, find and store ExecutionBlocks, and record into them."`
	Prjs    projects              `cmd:"" group:"Entities" reads:"" help:"Read, find and store Projects."`
	Notes   searchedBy[findNotes] `cmd:"" group:"Entities" reads:"" help:"Read, find and store notes: what people say about the night."`
	Note    note                  `cmd:"" group:"Entities" help:"Write a note: what there is to say about the night, a block or a call."`
	Open    opening               `cmd:"" group:"Entities" reads:"" help:"Open the page of an entity in the browser."`
	Edit    edit                  `cmd:"" group:"Entities" help:"Change an entity in your editor."`
	Status  status                `cmd:"" group:"Entities" help:"Print the statuses of an entity, or say one."`
	Changes changes               `cmd:"" group:"Entities" reads:"" help:"Print what was stored, recorded and said, oldest first; with -f, follow new changes."`
	Calls   findCalls             `cmd:"" group:"Entities" reads:"" help:"Find calls, such as those that failed, or count them."`
	Night   nightReport           `cmd:"" group:"Entities" reads:"" help:"Report what was done in a night."`
	Running running               `cmd:"" group:"Entities" reads:"" help:"Print the calls that are running now; with -f, whenever they change."`
	Whoami  whoami                `cmd:"" group:"Entities" reads:"" help:"Print who the archive takes you for, and what you may do."`

	settings settings
}

// BeforeResolve finds the values of the flags that are not on the command line.
func (c *commands) BeforeResolve(ctx *kong.Context) error {
	ctx.AddResolver(&c.settings)
	return c.settings.gather(ctx)
}

// entityGroup is the group of the commands that use a running archive.
const entityGroup = "Entities"

// Exit codes. They are documented, and scripts rely on them.
const (
	exitOK       = 0
	exitFailed   = 1 // the command failed
	exitUsage    = 2 // the command line is not valid
	exitNotFound = 3 // the archive has no such entity
	exitConflict = 4 // what was sent contradicts what is stored, or itself
	exitSetAside = 5 // something could not be imported, and was set aside
)

const description = `The observation archive: it stores and versions what a telescope was asked to do
and what it did.

Start with "oda serve": it needs no configuration, keeps its data in ./oda-data,
and prints its address. Each flag can also be set with the environment variable
shown next to it, and the flags of a server in a file (--config). A flag takes
precedence over its variable, and the variable over the file.

Commands that use a running archive send the token in the variable ODA_TOKEN, or
in the file named by ODA_TOKEN_FILE.

Exit codes: 0 done; 1 failed; 2 invalid command line; 3 no such entity;
4 conflict: the request contradicts what is stored, or itself (the archive
answered 412 or 422); 5 some documents could not be imported, and were set aside.`

// streams is where a command reads from and writes to.
type streams struct {
	in       io.Reader
	out, err io.Writer
	version  string
	args     []string // the command line, to read the settings again
}

// Run runs a command line and returns the exit code. The command ends early
// when the process is asked to stop, and the process at once when it is asked again.
func Run(args []string, out, errOut io.Writer, programVersion string) int {
	exit := -1
	parser, read, err := newParser(out, errOut, func(code int) { exit = code })
	if err != nil {
		fmt.Fprintf(errOut, "oda: %v\n", err)
		return exitFailed
	}
	if len(args) == 0 {
		args = []string{"--help"}
	}
	if wantsVersion(args) {
		args = []string{"version"}
	}
	command, err := parser.Parse(args)
	if exit >= 0 { // help was asked for and printed
		return exit
	}
	if wrong, ok := errors.AsType[faults](err); ok {
		fmt.Fprintf(errOut, "oda: %s\n", shownError(errOut, wrong))
		return exitUsage
	}
	if err != nil {
		fmt.Fprintf(errOut, "oda: %s\n", shownError(errOut, errors.New(usageError(err))))
		return exitUsage
	}
	if selected := command.Selected(); lacksIdentifier(selected) {
		fmt.Fprintf(errOut, "oda: the identifier is empty; is a variable not set? (try \"%s --help\")\n", commandLine(selected))
		return exitUsage
	}
	ctx := context.Background()
	if group := command.Selected().ClosestGroup(); group == nil || group.Key != entityGroup {
		var stop context.CancelFunc
		ctx, stop = signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
		defer stop()
		context.AfterFunc(ctx, stop) // a second signal ends a command that cannot end by itself
	} // else a signal ends the command at once, even while it waits for input
	command.BindTo(ctx, (*context.Context)(nil))
	command.Bind(command, parser, &read.settings)
	bindArchive(command)
	if err := command.Run(streams{os.Stdin, out, errOut, programVersion, args}); err != nil {
		f := failureOf(err)
		if f.text != "" {
			fmt.Fprintf(errOut, "oda: %s\n", shownError(errOut, err))
		}
		return f.exit
	}
	return exitOK
}

// bindArchive lets a method Run have a parameter for the archive that its command
// asks, and one for the kind of the entities that it is about.
func bindArchive(command *kong.Context) {
	selected := command.Selected().Target.Addr().Interface()
	var wrong error
	if asks, ok := selected.(interface {
		archive(ctx context.Context) (*client.Client, error)
	}); ok {
		wrong = command.BindToProvider(asks.archive)
	}
	if kind, ok := oda.KindOf(strings.Fields(command.Command())[0]); ok {
		command.Bind(kind)
	} else if names, ok := selected.(interface{ kind() (oda.Kind, error) }); ok {
		wrong = errors.Join(wrong, command.BindToProvider(names.kind))
	}
	if wrong != nil {
		panic(wrong) // they are functions
	}
}

// shownError returns what a person is told. It may quote a document, or a server that
// is no archive.
func shownError(to io.Writer, err error) string {
	if (coloring{}).look(to).people {
		return visibleLines(err.Error())
	}
	return err.Error()
}

// newParser returns a parser of command lines, and what it reads them into.
func newParser(out, errOut io.Writer, exit func(int)) (*kong.Kong, *commands, error) {
	read := &commands{}
	parser, err := kong.New(read,
		kong.Name("oda"),
		kong.Description(description),
		kong.Writers(out, errOut),
		kong.Exit(exit),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true, NoExpandSubcommands: true, WrapUpperBound: 100}),
		kong.Help(printHelp),
		kong.ValueFormatter(withVariables),
		kong.Vars{"generator": "a hash of host name and process", "archive": defaultArchive, "longest": strconv.Itoa(demo.DefaultLongest)},
	)
	if err != nil {
		return nil, nil, err
	}
	return parser, read, takeVariables(parser)
}

// parsed returns what a command line says, without running it.
func parsed(args ...string) (*commands, error) {
	parser, read, err := newParser(io.Discard, io.Discard, func(int) {})
	if err != nil {
		return nil, err
	}
	_, err = parser.Parse(args)
	return read, err
}

// version prints the version.
type version struct{}

// Run prints the version.
func (version) Run(s streams) error {
	_, err := fmt.Fprintln(s.out, "oda "+s.version)
	return err
}
