package env

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// HomeExamples opens the home page and returns the text of its examples, in
// order, as a person would paste them into a shell. ctx comes from Browser.
func HomeExamples(ctx context.Context, homeURL string) ([]string, error) {
	err := chromedp.Do(ctx, chromedp.Navigate(homeURL), chromedp.WaitVisible(chromedp.CSS(`.examples`)))
	if err != nil {
		return nil, fmt.Errorf("open the home page %s: %w", homeURL, err)
	}
	examples, err := chromedp.Run(ctx, chromedp.Evaluate[[]string](
		`[...document.querySelectorAll(".examples code")].map(e => e.textContent)`))
	if err != nil {
		return nil, fmt.Errorf("read the examples on %s: %w", homeURL, err)
	}
	return examples, nil
}

// Param is a value for one parameter of an operation.
type Param struct{ Name, Value string }

// Answer is what the Swagger UI shows of a response.
type Answer struct {
	Status int
	Body   string
}

// TryItOut tries an operation in the Swagger UI that is open, as a person would: it unfolds
// the operation, fills in the parameters, clicks "Execute" and reads the answer. ctx comes
// from Browser.
func TryItOut(ctx context.Context, operationID string, params ...Param) (Answer, error) {
	block := `.opblock[id$="-` + operationID + `"]`
	if err := unfold(ctx, block); err != nil {
		return Answer{}, fmt.Errorf("unfold the operation %s: %w", operationID, err)
	}
	for _, p := range params {
		if err := fillIn(ctx, block, p); err != nil {
			return Answer{}, fmt.Errorf("fill in the parameter %s of %s: %w", p.Name, operationID, err)
		}
	}
	live := block + ` .live-responses-table .response`
	err := chromedp.Do(ctx,
		chromedp.Click(chromedp.CSS(block+` .execute`)),
		chromedp.WaitVisible(chromedp.CSS(live+` .response-col_description pre`)),
	)
	if err != nil {
		return Answer{}, fmt.Errorf("execute the operation %s: %w", operationID, err)
	}
	return readAnswer(ctx, live)
}

// unfold opens the block of an operation with its parameters editable.
func unfold(ctx context.Context, block string) error {
	button := chromedp.CSS(block + ` .try-out__btn`)
	err := chromedp.Do(ctx,
		chromedp.Click(chromedp.CSS(block+` .opblock-summary-control`)),
		chromedp.WaitVisible(button),
	)
	if err != nil {
		return err
	}
	class, err := chromedp.Run(ctx, chromedp.AttributeValue(button, "class"))
	if err != nil {
		return err
	}
	// While the parameters are editable, this button cancels.
	if strings.Contains(class.Value, "cancel") {
		return nil
	}
	return chromedp.Do(ctx, chromedp.Click(button))
}

// fillIn replaces the value of a parameter, which may already contain an
// example.
func fillIn(ctx context.Context, block string, p Param) error {
	input := chromedp.CSS(block + ` tr[data-param-name="` + p.Name + `"] input`)
	return chromedp.Do(ctx,
		chromedp.Focus(input),
		chromedp.SendKeys(input, kb.End+kb.Home),
		chromedp.KeyEvent(kb.End, chromedp.KeyModifiers(chromedp.ModifierShift)),
		chromedp.KeyEvent(kb.Delete),
		chromedp.SendKeys(input, p.Value),
	)
}

// readAnswer reads the live response in the block.
func readAnswer(ctx context.Context, live string) (Answer, error) {
	status, err := chromedp.Run(ctx, chromedp.Text(chromedp.CSS(live+` .response-col_status`)))
	if err != nil {
		return Answer{}, fmt.Errorf("read the status of the answer: %w", err)
	}
	body, err := chromedp.Run(ctx, chromedp.TextContent(chromedp.CSS(live+` .response-col_description pre`)))
	if err != nil {
		return Answer{}, fmt.Errorf("read the body of the answer: %w", err)
	}
	// A note such as "Undocumented" may follow the number.
	number, _, _ := strings.Cut(strings.TrimSpace(status), "\n")
	code, err := strconv.Atoi(number)
	if err != nil {
		return Answer{}, fmt.Errorf("read the status of the answer: %w", err)
	}
	return Answer{Status: code, Body: body}, nil
}
