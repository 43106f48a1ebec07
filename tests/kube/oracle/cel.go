// Says what Kubernetes answers to selectors of devices: one question a line, one answer a line.
//
// {"expression": "…", "devices": [{"driver": "…", "attributes": {…}, "capacity": {…}}]}
// {"refused": "…"} or {"answers": ["true", "false", "error: …"]}
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/dynamic-resource-allocation/cel"
)

type device struct {
	Driver string `json:"driver"`
	resourceapi.Device
}

type question struct {
	Expression string   `json:"expression"`
	Devices    []device `json:"devices"`
}

type answer struct {
	Refused string   `json:"refused,omitempty"`
	Answers []string `json:"answers,omitempty"`
}

func matches(selector *cel.CompilationResult, asked device) (said string) {
	defer func() {
		if panicked := recover(); panicked != nil {
			said = fmt.Sprintf("error: panic: %v", panicked)
		}
	}()
	matched, _, err := selector.DeviceMatches(context.Background(), cel.Device{
		Driver:                   asked.Driver,
		AllowMultipleAllocations: asked.AllowMultipleAllocations,
		Attributes:               asked.Attributes,
		Capacity:                 asked.Capacity,
	})
	if err != nil {
		return "error: " + err.Error()
	}
	return fmt.Sprint(matched)
}

func answerTo(asked question) (said answer) {
	defer func() {
		if panicked := recover(); panicked != nil {
			said = answer{Refused: fmt.Sprintf("panic: %v", panicked)}
		}
	}()
	compiler := cel.GetCompiler(cel.Features{EnableConsumableCapacity: true, EnableListTypeAttributes: true})
	selector := compiler.CompileCELExpression(asked.Expression, cel.Options{DisableCostEstimation: true})
	if selector.Error != nil {
		return answer{Refused: selector.Error.Error()}
	}
	for _, one := range asked.Devices {
		said.Answers = append(said.Answers, matches(&selector, one))
	}
	return said
}

func main() {
	lines := bufio.NewReaderSize(os.Stdin, 1<<20)
	out := bufio.NewWriter(os.Stdout)
	defer out.Flush()
	answers := json.NewEncoder(out)
	for decoder := json.NewDecoder(lines); decoder.More(); {
		var asked question
		if err := decoder.Decode(&asked); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		if err := answers.Encode(answerTo(asked)); err != nil {
			os.Exit(1)
		}
		out.Flush()
	}
}
