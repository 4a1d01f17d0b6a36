package demo

import (
	"encoding/json"
	"time"
)

// The documents, in the shape that the observatory's own have. Members that no
// page reads are there too, since real documents are full of them.
type (
	head struct {
		Interface string          `json:"interface"`
		Metadata  json.RawMessage `json:"metadata,omitempty"`
	}

	project struct {
		head
		ID        string     `json:"prj_id"`
		Name      string     `json:"name"`
		Status    string     `json:"status"`
		ObsBlocks []obsBlock `json:"obs_blocks"`
	}
	obsBlock struct {
		ID          string   `json:"obs_block_id"`
		Name        string   `json:"name"`
		Definitions []string `json:"sbd_ids"`
	}

	definition struct {
		head
		ID          string              `json:"sbd_id"`
		Name        string              `json:"name"`
		Description string              `json:"description"`
		Telescope   string              `json:"telescope"`
		ObsBlock    string              `json:"ob_ref"`
		Activities  map[string]activity `json:"activities"`
		Targets     []target            `json:"targets"`
		CSP         []csp               `json:"csp_configurations"`
		Dishes      *dishes             `json:"dish_allocations,omitempty"`
		Stations    *stations           `json:"mccs_allocation,omitempty"`

		edits []edit
	}
	activity struct {
		Kind   string `json:"kind"`
		Path   string `json:"path"`
		Branch string `json:"branch"`
		Args   args   `json:"function_args"`
	}
	args struct {
		Args   []any          `json:"args"`
		Kwargs map[string]any `json:"kwargs"`
	}
	target struct {
		ID         string     `json:"target_id"`
		Name       string     `json:"name"`
		Coordinate coordinate `json:"reference_coordinate"`
		Pointing   string     `json:"pointing_pattern"`
	}
	coordinate struct {
		Kind  string `json:"kind"`
		RA    string `json:"ra_str"`
		Dec   string `json:"dec_str"`
		Epoch int    `json:"epoch"`
	}
	csp struct {
		ID        string  `json:"config_id"`
		Name      string  `json:"name"`
		Band      string  `json:"frequency_band"`
		Centre    float64 `json:"centre_frequency"`
		Bandwidth float64 `json:"bandwidth"`
		Channels  int     `json:"number_of_channels"`
	}
	dishes struct {
		ID     string   `json:"dish_allocation_id"`
		Array  string   `json:"selected_subarray_definition"`
		Dishes []string `json:"dish_ids"`
		Scans  []scan   `json:"scan_sequence"`
	}
	stations struct {
		ID       string `json:"mccs_allocation_id"`
		Array    string `json:"selected_subarray_definition"`
		Stations []int  `json:"station_ids"`
		Scans    []scan `json:"scan_sequence"`
	}
	scan struct {
		ID       string `json:"scan_definition_id"`
		Target   string `json:"target_ref"`
		CSP      string `json:"csp_configuration_ref"`
		Duration int    `json:"scan_duration_ms"`
		Intent   string `json:"scan_intent"`
	}

	instance struct {
		head
		ID         string `json:"sbi_id"`
		Telescope  string `json:"telescope"`
		Definition string `json:"sbd_ref"`
		Version    int    `json:"sbd_version"`
		Block      string `json:"eb_ref"`
		Subarray   int    `json:"subarray_id"`
		Status     string `json:"status"`
	}

	block struct {
		head
		ID         string `json:"eb_id,omitempty"`
		Telescope  string `json:"telescope"`
		Definition string `json:"sbd_ref"`
		Version    int    `json:"sbd_version"`
		Instance   string `json:"sbi_ref,omitempty"`
	}

	record struct {
		Request  string     `json:"request"`
		Args     args       `json:"request_args"`
		Status   string     `json:"status,omitempty"`
		Response *response  `json:"response,omitempty"`
		Error    *failure   `json:"error,omitempty"`
		Sent     *time.Time `json:"request_sent_at,omitempty"`
		Received *time.Time `json:"response_received_at,omitempty"`
	}
	response struct {
		Result string `json:"result"`
	}
	failure struct {
		Detail string `json:"detail"`
		Trace  string `json:"stacktrace,omitempty"`
	}
)

func (h *head) meta() *json.RawMessage { return &h.Metadata }

// newHead returns the members that every document begins with.
func newHead(kind string) head {
	return head{Interface: "https://schema.skao.int/ska-oso-pdm-" + kind + "/0.1"}
}

// scans returns the scans of a definition, whichever telescope it is for.
func (d *definition) scans() []scan {
	if d.Dishes != nil {
		return d.Dishes.Scans
	}
	return d.Stations.Scans
}

// edit is what somebody changed to make the next version.
type edit struct {
	by     string
	change func(*definition)
}

// edits are changes that people make to definitions, in the order in which they
// think of them.
var edits = []edit{
	{scheduler, func(d *definition) {
		for i, s := range d.scans() {
			if s.Intent == "Science" {
				d.scans()[i].Duration *= 2
			}
		}
		d.Description += " Twice as long on the target."
	}},
	{scientist, func(d *definition) {
		d.CSP[0].Channels *= 2
		d.CSP[0].Name += ", fine"
	}},
	{scientist, func(d *definition) {
		d.Name += ", repeat"
		d.Activities["observe"].Args.Kwargs["with_processing"] = false
	}},
}
