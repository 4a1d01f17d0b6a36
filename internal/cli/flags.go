package cli

import (
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/alecthomas/kong"

	"oda"
	"oda/internal/app"
	"oda/internal/skuid"
)

// logging has the flags for the log of a server.
type logging struct {
	LogFormat string `default:"text" enum:"text,json" env:"ODA_LOG_FORMAT" placeholder:"FORMAT" help:"Format of the log on stderr: text or json (default ${default})."`
	LogLevel  string `default:"info" enum:"debug,info,warn,error" env:"ODA_LOG_LEVEL" reload:"hangup" placeholder:"LEVEL" help:"Lowest level to log: debug, info, warn or error (default ${default})."`
}

// gathered returns the log of a server and its level, and a function that writes
// what it has gathered, for the end.
func (l logging) gathered(to io.Writer) (log *slog.Logger, level *slog.LevelVar, flush func()) {
	gathered := &lines{to: to}
	log, level = l.logger(gathered)
	return slog.New(gatheredLog{log.Handler(), gathered}), level, gathered.flush
}

// logger returns the log, and its level, which may be changed.
func (l logging) logger(to io.Writer) (*slog.Logger, *slog.LevelVar) {
	level := new(slog.LevelVar)
	level.Set(l.level())
	options := &slog.HandlerOptions{Level: level}
	if l.LogFormat == "json" {
		return slog.New(slog.NewJSONHandler(to, options)), level
	}
	return slog.New(slog.NewTextHandler(to, options)), level
}

func (l logging) level() (level slog.Level) {
	if err := level.UnmarshalText([]byte(l.LogLevel)); err != nil {
		panic(err) // the flag allows only valid levels
	}
	return level
}

// byteSize is a number of bytes: 65536, 64KiB, 64MiB or 1GiB.
type byteSize int64

// UnmarshalText parses a size.
func (b *byteSize) UnmarshalText(text []byte) error {
	digits, unit := string(text), int64(1)
	for suffix, size := range map[string]int64{"KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30} {
		if rest, ok := strings.CutSuffix(digits, suffix); ok {
			digits, unit = rest, size
			break
		}
	}
	n, err := strconv.ParseInt(strings.TrimSpace(digits), 10, 64)
	if err != nil || n < 0 || n > (1<<62)/unit {
		return fmt.Errorf("%q is not a size; write it as 65536, 64KiB, 64MiB or 1GiB", text)
	}
	*b = byteSize(n * unit)
	return nil
}

// String returns the size as it is written.
func (b byteSize) String() string {
	for _, unit := range []struct {
		suffix string
		size   byteSize
	}{{"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10}} {
		if b > 0 && b%unit.size == 0 {
			return strconv.FormatInt(int64(b/unit.size), 10) + unit.suffix
		}
	}
	return strconv.FormatInt(int64(b), 10)
}

// generator is the generator number for new identifiers.
type generator struct {
	number uint16
	given  bool
}

// UnmarshalText parses a generator number.
func (g *generator) UnmarshalText(text []byte) error {
	n, err := strconv.ParseUint(string(text), 10, 16)
	if err != nil || n > skuid.MaxGenerator {
		return fmt.Errorf("%q is not a generator; give a number from 0 to %d", text, skuid.MaxGenerator)
	}
	*g = generator{uint16(n), true}
	return nil
}

// String returns the number, empty if none was given.
func (g generator) String() string {
	if !g.given {
		return ""
	}
	return strconv.Itoa(int(g.number))
}

// orDefault returns the number, or the default if none was given.
func (g generator) orDefault() uint16 {
	if g.given {
		return g.number
	}
	return skuid.DefaultGenerator()
}

// positive returns which values are not positive.
func positive(values map[string]int64) (wrong faults) {
	for _, name := range slices.Sorted(maps.Keys(values)) {
		if values[name] <= 0 {
			wrong = append(wrong, fmt.Errorf("%s must be more than 0", name))
		}
	}
	return wrong
}

// order is the order of a search. That in which the last comes first begins with a
// hyphen, which the parser would take for the beginning of a flag.
type order string

// Decode takes the order from the command line. The parser checks which there are.
func (o *order) Decode(ctx *kong.DecodeContext) error {
	text, err := popText(ctx, func(text string) bool { return slices.Contains(ctx.Value.EnumSlice(), text) })
	*o = order(text)
	return err
}

// popText takes the value of a flag from the command line. It may begin with a hyphen
// if it is meant as a value.
func popText(ctx *kong.DecodeContext, meant func(text string) bool) (text string, err error) {
	if next, ok := ctx.Scan.Peek().Value.(string); ok && meant(next) {
		ctx.Scan.Pop()
		return next, nil
	}
	err = ctx.Scan.PopValueInto("string", &text)
	return text, err
}

// moment is a time in any format that the archive accepts, or as people say it.
type moment struct{ time.Time }

// Decode takes the time from the command line: also -2h, as other programs write it.
func (m *moment) Decode(ctx *kong.DecodeContext) error {
	text, err := popText(ctx, func(text string) bool {
		_, ok := spoken(text, time.Now().UTC())
		return ok
	})
	if err != nil {
		return err
	}
	if at, ok := spoken(text, time.Now().UTC()); ok {
		m.Time = at
		return nil
	}
	at, err := oda.ParseTime(text)
	if err != nil {
		return fmt.Errorf("%q %w, or as yesterday, yesterday 20:13, last-night, or 2h, which is two hours ago", text, err)
	}
	m.Time = at
	return nil
}

// spoken returns the time that words mean. As with dates, a day begins at midnight
// in UTC; a night begins at noon. A time without a day is the last one before now.
func spoken(text string, now time.Time) (time.Time, bool) {
	const day = 24 * time.Hour
	midnight := now.Truncate(day)
	switch text {
	case "now":
		return now, true
	case "today":
		return midnight, true
	case "yesterday":
		return midnight.Add(-day), true
	case "last-night":
		return midnight.Add(-day / 2), true
	}
	if at, ok := timeOfDay(text, now); ok {
		return at, true
	}
	text = strings.TrimPrefix(text, "-") // as other programs write it
	for suffix, days := range map[string]int{"d": 1, "w": 7} {
		if count, ok := strings.CutSuffix(text, suffix); ok {
			n, err := strconv.ParseUint(count, 10, 16)
			return now.AddDate(0, 0, -days*int(n)), err == nil
		}
	}
	ago, err := time.ParseDuration(text)
	return now.Add(-ago), err == nil && ago >= 0 && text != "0"
}

// timeOfDay returns a time of yesterday or today, or the last one before now.
func timeOfDay(text string, now time.Time) (time.Time, bool) {
	const day = 24 * time.Hour
	for word, ago := range map[string]time.Duration{"yesterday ": day, "today ": 0, "": 0} {
		for _, layout := range []string{"15:04", time.TimeOnly} {
			clock, err := time.Parse(word+layout, text)
			if err != nil {
				continue
			}
			at := now.Truncate(day).Add(clock.Sub(clock.Truncate(day)) - ago)
			if word == "" && at.After(now) {
				at = at.Add(-day)
			}
			return at, true
		}
	}
	return now, false
}

// network is a range of addresses, or one address.
type network netip.Prefix

// UnmarshalText parses a network. Addresses of IPv4 that are written in IPv6, as
// ::ffff:10.0.0.7, are those of IPv4.
func (n *network) UnmarshalText(text []byte) error {
	prefix, err := netip.ParsePrefix(string(text))
	if err != nil {
		var one netip.Addr
		if one, err = netip.ParseAddr(string(text)); err == nil {
			prefix, err = one.Prefix(one.BitLen())
		}
	}
	if err == nil && prefix.Addr().Is4In6() {
		const before = 96 // bits
		prefix, err = prefix.Addr().Unmap().Prefix(prefix.Bits() - before)
	}
	if err != nil {
		return fmt.Errorf("%q is not a network; write it as 10.0.0.0/24, 10.0.0.7 or fd00::/64", text)
	}
	*n = network(prefix.Masked())
	return nil
}

// String returns the network as it is written.
func (n network) String() string { return netip.Prefix(n).String() }

func prefixes(networks []network) []netip.Prefix {
	list := make([]netip.Prefix, len(networks))
	for i, n := range networks {
		list[i] = netip.Prefix(n)
	}
	return list
}

// database is the address of a database.
type database string

// UnmarshalText checks an address.
func (d *database) UnmarshalText(text []byte) error {
	*d = database(text)
	return app.CheckDatabase(string(text))
}
