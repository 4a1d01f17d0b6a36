package web_test

import (
	"strings"
	"testing"
)

// The calls around the one in the panel change as calls come, and with the filter.
func TestThePanelKnowsTheCallsAround(t *testing.T) {
	s, ctx := withBlock(t, callIn("m.f", 0, 1, false), callIn("m.g", 1, 2, false), callIn("m.f", 2, 3, false))
	connectedTimeline(t, ctx, s, "eb-1?call=3")
	around := func(want string) {
		t.Helper()
		eventually(t, ctx, `[...document.querySelectorAll(".panel nav a")].map((a) => a.textContent + new URL(a.href).searchParams.get("call")).join() === "`+want+`"`)
	}
	around("‹ Call before2")
	evaluate[bool](t, ctx, `window.record = document.querySelector(".panel details"), window.link = document.querySelector(".panel [rel=prev]"), link.focus(), record.open = true`)
	s.record(t, "eb-1", callIn("m.g", 4, 5, true))
	around("‹ Call before2,Call after ›4,Failure after ›4")
	if !evaluate[bool](t, ctx, `document.activeElement === link && record.isConnected`) {
		t.Error("a call that comes disturbs whoever reads another one")
	}
	// The link that was pressed may be replaced before its call is there.
	evaluate[bool](t, ctx, `window.link = document.querySelector(".panel [data-go=failureAfter]"), link.focus(), link.click(), link.remove(), true`)
	eventually(t, ctx, `document.querySelector(".panel article").dataset.call === "4" && document.activeElement === document.querySelector(".lanes")`)
	evaluate[bool](t, ctx, `document.querySelector(".panel [rel=prev]").click(), true`)
	around("‹ Call before2,Call after ›4,Failure after ›4")
	evaluate[bool](t, ctx, `document.querySelector("[name=function]").value = "m.f", document.querySelector(".callfilter").dispatchEvent(new Event("change"))`)
	around("‹ Call before1")
	// What comes while a call is on its way counts as well.
	evaluate[bool](t, ctx, `(() => {
		const ask = fetch;
		window.fetch = async (address, ...rest) => {
			const answer = await ask(address, ...rest);
			if (/timeline\/\d/.test(address)) await new Promise((done) => setTimeout(done, 500));
			return answer;
		};
		document.querySelector("[name=function]").value = "";
		document.querySelector(".callfilter").dispatchEvent(new Event("change"));
		return true;
	})()`)
	around("‹ Call before2,Call after ›4,Failure after ›4")
	evaluate[bool](t, ctx, `document.querySelector(".panel [rel=next]").click(), true`)
	s.record(t, "eb-1", callIn("m.g", 6, 7, true))
	around("‹ Call before3,Call after ›5,Failure after ›5")
	// The links keep the part that is shown, and the focus.
	showTimeline(t, ctx, s, "eb-1?call=5&from=2026-03-01T20:00:00Z&to=2026-03-01T20:00:09Z")
	eventually(t, ctx, `document.querySelector(".live").dataset.connected === "true"`)
	evaluate[bool](t, ctx, `document.querySelector(".panel [data-go=failureBefore]").focus(), true`)
	s.record(t, "eb-1", callIn("m.g", 7, 8, true))
	around("‹ Call before4,Call after ›6,‹ Failure before4,Failure after ›6")
	eventually(t, ctx, `document.activeElement.dataset.go === "failureBefore" && new URL(document.querySelector(".panel [rel=next]").href).searchParams.has("from")`)
	if got := s.get(t, "ebs/eb-1/timeline/around?call=99"); got.Status != 200 || strings.Contains(got.Text(), "nav") {
		t.Errorf("around a call that is not there is %d %s", got.Status, got.Text())
	}
}
