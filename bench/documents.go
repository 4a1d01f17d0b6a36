package main

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"strings"
)

// documentSize is the size of stored entities.
const documentSize = 5000

// document returns an SBDefinition of exactly documentSize bytes: as many
// targets with scans as fit, padded by a description. Documents differ only in
// their identifiers.
func document(id string) []byte {
	random := rand.New(rand.NewPCG(1, 1))
	var targets, scans, sequence []string
	text := definition(id, "", nil, nil, nil)
	for n := 0; ; n++ {
		targets = append(targets, fmt.Sprintf(`{"target_id":"target-%03d","reference_coordinate":{"kind":"equatorial","ra":"%02d:%02d:%06.3f","dec":"-%02d:%02d:%06.3f","unit":["hourangle","deg"],"reference_frame":"icrs"},"pointing_pattern":{"active":"FivePointParameters","parameters":[{"kind":"FivePointParameters","offset_arcsec":%.2f}]},"radial_velocity":{"definition":"RADIO","quantity":{"unit":"km / s","value":%.4f},"redshift":0.0}}`,
			n, random.IntN(24), random.IntN(60), 60*random.Float64(), random.IntN(90), random.IntN(60), 60*random.Float64(), 20*random.Float64(), 300*random.Float64()))
		scans = append(scans, fmt.Sprintf(`{"scan_definition_id":"scan-%03d","scan_duration_ms":%d.0,"target_ref":"target-%03d","csp_configuration_ref":"csp-mid-1","dish_configuration_ref":"dish-band-2","pointing_correction":"MAINTAIN"}`,
			n, 1000*(10+random.IntN(600)), n))
		sequence = append(sequence, fmt.Sprintf(`"scan-%03d"`, n))
		longer := definition(id, "", targets, scans, sequence)
		if len(longer) > documentSize {
			missing := documentSize - len(text)
			return []byte(definition(id, strings.Repeat("Interferometric observation of the target field. ", 1+missing/40)[:missing], targets[:n], scans[:n], sequence[:n]))
		}
		text = longer
	}
}

// definition assembles a document from its parts.
func definition(id, description string, targets, scans, sequence []string) string {
	return fmt.Sprintf(`{"interface":"https://schema.skao.int/ska-oso-pdm-sbd/0.1","sbd_id":%q,"telescope":"ska_mid","description":%q,`+
		`"activities":{"allocate":{"kind":"filesystem","path":"file:///scripts/allocate_from_file_mid_sb.py","function_args":{"main":{"args":[],"kwargs":{"subarray_id":1}}}},`+
		`"observe":{"kind":"git","path":"git://scripts/observe_mid_sb.py","repo":"https://gitlab.com/ska-telescope/oso/ska-oso-scripting","branch":"main","function_args":{"init":{"args":[],"kwargs":{"subarray_id":1}}}}},`+
		`"dish_allocations":{"dish_allocation_id":"dishes-1","selected_subarray_definition":"AA0.5","dish_ids":["SKA001","SKA036","SKA063","SKA100"]},`+
		`"dish_configurations":[{"dish_configuration_id":"dish-band-2","receiver_band":"2"}],`+
		`"csp_configurations":[{"config_id":"csp-mid-1","name":"band 2","common":{"subarray_id":1,"band_5_tuning":[]},"cbf":{"fsps":[{"fsp_id":1,"function_mode":"CORR","frequency_slice_id":1,"integration_factor":1,"zoom_factor":0}]}}],`+
		`"targets":[%s],"scan_definitions":[%s],"scan_sequence":[%s]}`,
		id, description, strings.Join(targets, ","), strings.Join(scans, ","), strings.Join(sequence, ","))
}

// calls are the functions that a script calls on the telescope, over and over.
var calls = [...]string{"assign_resources", "configure_from_scan_", "scan_for_duration", "end_of_observation"}

// record returns record number i of a block, of about 280 bytes.
func record(i int) []byte {
	return fmt.Appendf(nil, `{"request":"ska_oso_scripting.functions.%s","request_args":{"args":[],"kwargs":{"subarray_id":1,"scan_id":%d}},"status":"OK","response":{"result":"'ObsState.READY'"},"request_sent_at":"2026-03-01T%02d:%02d:%02d.123456Z","response_received_at":"2026-03-01T%02d:%02d:%02d.654321Z"}`,
		calls[i%len(calls)], i, i/3600%24, i/60%60, i%60, i/3600%24, i/60%60, i%60)
}

// failure is record with a failed call, just as long.
func failure(i int) []byte {
	text := bytes.Replace(record(i), []byte(`"subarray_id":1,`), []byte(`"receptor":"SKA001",`), 1)
	return bytes.Replace(text, []byte(`"status":"OK","response":{"result":"'ObsState.READY'"}`), []byte(`"status":"ERROR","error":{"detail":"TimeoutError: late"}`), 1)
}

// block returns an ExecutionBlock without records.
func block(id string) []byte {
	return fmt.Appendf(nil, `{"interface":"https://schema.skao.int/ska-oso-pdm-eb/0.1","eb_id":%q,"telescope":"ska_mid","request_responses":[]}`, id)
}
