package demo

import (
	"context"
	"fmt"
	"time"

	"oda"
	"oda/client"
)

// note is what somebody says about the night.
type note struct {
	ID        string    `json:"note_id"`
	Text      string    `json:"text"`
	Level     string    `json:"level,omitempty"`
	Telescope string    `json:"telescope"`
	From      time.Time `json:"from"`
	To        time.Time `json:"to"`
	Lost      float64   `json:"time_lost_s,omitempty"`
	LostTo    string    `json:"time_lost_type,omitempty"`
	About     []subject `json:"about,omitempty"`
	Tags      []string  `json:"tags,omitempty"`

	by     string
	solved string // how its problem was solved; empty: it was not
}

// subject is what a note is about.
type subject struct {
	Kind     string `json:"kind"`
	ID       string `json:"id"`
	Sequence int    `json:"sequence,omitempty"`
}

// leastPause is how long nobody observes before somebody says why.
const leastPause = 45 * time.Minute

// remarks plans what the operators say about the observations and the pauses between them.
func (p *planner) remarks(now time.Time) {
	type array struct {
		telescope string
		number    int
	}
	last := map[array]time.Time{}
	for i := range p.observations {
		o := &p.observations[i]
		at := array{o.block.Telescope, o.instance.Subarray}
		if pause := o.begin.Sub(last[at]); pause >= leastPause && pause < 4*time.Hour {
			p.remark(o, note{
				Text: weather[o.block.Telescope], From: last[at], To: o.begin, Lost: pause.Round(time.Minute).Seconds(), LostTo: string(oda.LostToWeather), Tags: []string{"weather"},
			})
		}
		last[at] = o.end()
		about := subject{Kind: oda.ExecutionBlock.Collection(), ID: o.block.ID}
		one := note{From: o.begin, To: o.end(), Level: string(oda.Trouble)}
		switch o.ended {
		case failed:
			for sequence, c := range o.calls {
				if c.Error != nil {
					about.Sequence = sequence + 1
				}
			}
			one.Text = fmt.Sprintf("Given up: %s\n\nThe observation should be **repeated**.", o.lastFault())
			one.Lost, one.LostTo, one.Tags = o.end().Sub(o.begin).Round(time.Second).Seconds(), string(oda.LostToFault), []string{"repeat"}
			if now.Sub(o.end()) > 48*time.Hour {
				one.solved = "Repeated."
			}
		case silent:
			one.Text = fmt.Sprintf("The script of subarray %d was killed. Nobody knows how the observation ended.\n\n- look at the data\n- *then* say what came of it", o.instance.Subarray)
		case stopped:
			one.Text, one.Level = "Stopped at the limit of wind.", string(oda.Warning)
			one.Tags = []string{"weather"}
		default:
			continue
		}
		one.About = []subject{about}
		p.remark(o, one)
	}
}

// weather is why nobody observes.
var weather = map[string]string{
	mid: "Wind above the limit, dishes stowed.\n\nWe go on when the mean of ten minutes is below 11 m/s.",
	low: "Lightning within 20 km, stations switched off.",
}

// remark adds what the operator of an observation says.
func (p *planner) remark(o *observation, n note) {
	n.ID, n.Telescope, n.by = p.id("note"), o.block.Telescope, o.operator()
	p.notes = append(p.notes, n)
}

// notes stores what was said, and says of the problems that were solved that they were.
func (f *filler) notes(ctx context.Context, week *plan) error {
	for i := range week.notes {
		n := &week.notes[i]
		archive, err := f.as(n.by)
		if err != nil {
			return err
		}
		if _, err := archive.Store(ctx, oda.Note, n.ID, encode(n)); err != nil {
			return err
		}
		f.done.Notes++
		if n.solved == "" {
			continue
		}
		if _, err := archive.Say(ctx, oda.Ref{Kind: oda.Note, ID: n.ID}, client.NewStatus{Status: "Resolved", Reason: n.solved, At: n.To.Add(time.Hour)}); err != nil {
			return err
		}
		f.done.Statuses++
	}
	f.tell(fmt.Sprintf("%d notes", f.done.Notes))
	return nil
}
