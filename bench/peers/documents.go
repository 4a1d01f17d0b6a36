package peers

import (
	"bytes"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"strings"
)

// words fill the description of a document up to the size that is asked for.
const words = "Interferometric observation of the calibrator and of the target field in full polarisation. "

// Document is an SBDefinition of exactly size bytes: targets with their scans,
// as many as fit, and a description for the rest. The same identifier always
// gives the same document. No document is smaller than one without targets,
// of about a thousand bytes.
func Document(size int, id string) []byte {
	seed := fnv.New64a()
	_, _ = seed.Write([]byte(id)) // never fails
	random := rand.New(rand.NewPCG(seed.Sum64(), 0))
	var targets, scans, sequence []string
	length := len(definition(id, "", nil, nil, nil))
	for {
		n := len(targets)
		target := fmt.Sprintf(`{"target_id":"target-%03d","reference_coordinate":{"kind":"equatorial","ra":"%02d:%02d:%06.3f","dec":"-%02d:%02d:%06.3f","unit":["hourangle","deg"],"reference_frame":"icrs"},"pointing_pattern":{"active":"FivePointParameters","parameters":[{"kind":"FivePointParameters","offset_arcsec":%.2f}]},"radial_velocity":{"definition":"RADIO","quantity":{"unit":"km / s","value":%.4f},"redshift":0.0}}`,
			n, random.IntN(24), random.IntN(60), 60*random.Float64(), random.IntN(90), random.IntN(60), 60*random.Float64(), 20*random.Float64(), 300*random.Float64())
		scan := fmt.Sprintf(`{"scan_definition_id":"scan-%03d","scan_duration_ms":%d.0,"target_ref":"target-%03d","csp_configuration_ref":"csp-mid-1","dish_configuration_ref":"dish-band-2","pointing_correction":"MAINTAIN"}`,
			n, 1000*(10+random.IntN(600)), n)
		step := fmt.Sprintf(`"scan-%03d"`, n)
		if length += len(target) + len(scan) + len(step) + 3*min(n, 1); length > size {
			break
		}
		targets, scans, sequence = append(targets, target), append(scans, scan), append(sequence, step)
	}
	text := definition(id, "", targets, scans, sequence)
	if missing := size - len(text); missing > 0 {
		text = definition(id, strings.Repeat(words, missing/len(words)+1)[:missing], targets, scans, sequence)
	}
	return text
}

// definition puts the parts of a document together.
func definition(id, description string, targets, scans, sequence []string) []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, `{"interface":"https://schema.skao.int/ska-oso-pdm-sbd/0.1","sbd_id":%q,"telescope":"ska_mid","description":%q,`, id, description)
	b.WriteString(`"activities":{"allocate":{"kind":"filesystem","path":"file:///scripts/allocate_from_file_mid_sb.py","function_args":{"main":{"args":[],"kwargs":{"subarray_id":1}}}},` +
		`"observe":{"kind":"git","path":"git://scripts/observe_mid_sb.py","repo":"https://gitlab.com/ska-telescope/oso/ska-oso-scripting","branch":"main","function_args":{"init":{"args":[],"kwargs":{"subarray_id":1}}}}},` +
		`"dish_allocations":{"dish_allocation_id":"dishes-1","selected_subarray_definition":"AA0.5","dish_ids":["SKA001","SKA036","SKA063","SKA100"]},` +
		`"dish_configurations":[{"dish_configuration_id":"dish-band-2","receiver_band":"2"}],` +
		`"csp_configurations":[{"config_id":"csp-mid-1","name":"band 2","common":{"subarray_id":1,"band_5_tuning":[]},"cbf":{"fsps":[{"fsp_id":1,"function_mode":"CORR","frequency_slice_id":1,"integration_factor":1,"zoom_factor":0}]}}],`)
	fmt.Fprintf(&b, `"targets":[%s],"scan_definitions":[%s],"scan_sequence":[%s]}`,
		strings.Join(targets, ","), strings.Join(scans, ","), strings.Join(sequence, ","))
	return b.Bytes()
}

// calls are what a script calls on the telescope, over and over.
var calls = [...]string{"assign_resources", "configure_from_scan_", "scan_for_duration", "end_of_observation"}

// Record is the i-th request/response of a block, of about 270 bytes.
func Record(i int) []byte {
	return fmt.Appendf(nil, `{"request":"ska_oso_scripting.functions.%s","request_args":{"args":[],"kwargs":{"subarray_id":1,"scan_id":%d}},"status":"OK","response":{"result":"'ObsState.READY'"},"request_sent_at":"2026-03-01T%02d:%02d:%02d.123456Z","response_received_at":"2026-03-01T%02d:%02d:%02d.654321Z"}`,
		calls[i%len(calls)], i, i/3600%24, i/60%60, i%60, i/3600%24, i/60%60, i%60)
}

// EmptyBlock is an ExecutionBlock into which nothing was recorded yet.
func EmptyBlock(id string) []byte {
	return fmt.Appendf(nil, `{"interface":"https://schema.skao.int/ska-oso-pdm-eb/0.1","eb_id":%q,"telescope":"ska_mid","request_responses":[]}`, id)
}
