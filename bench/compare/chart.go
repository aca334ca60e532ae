//go:build linux

package main

import (
	"fmt"
	"image/color"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// saveChart draws the ratios of all rows.
func (r *report) saveChart(file string) error {
	p := plot.New()
	p.Title.Text = "atomredis divided by redis-server"
	p.X.Label.Text = "ratio (logarithmic)"
	p.Y.Label.Text = "workload × pipeline"
	p.X.Scale, p.X.Tick.Marker = plot.LogScale{}, ratioTicks{}
	p.Legend.Top = true
	p.Add(plotter.NewGrid())

	labels := make([]plot.Tick, len(r.Rows))
	least, most := 0.5, 2.0
	for _, series := range []struct {
		name  string
		shape draw.GlyphDrawer
		color color.RGBA
		of    func(*row) metric
	}{
		{"operations per second: more is better", draw.CircleGlyph{}, color.RGBA{0x1f, 0x77, 0xb4, 0xff},
			func(r *row) metric { return r.PerSecond }},
		{"processor time per command: less is better", draw.PyramidGlyph{}, color.RGBA{0xff, 0x7f, 0x0e, 0xff},
			func(r *row) metric { return r.CPUMicros }},
		{"p99.9: less is better", draw.CrossGlyph{}, color.RGBA{0xd6, 0x27, 0x28, 0xff},
			func(r *row) metric { return r.P999 }},
	} {
		var points plotter.XYs
		for i, row := range r.Rows {
			y := float64(len(r.Rows) - 1 - i) // the first row is the uppermost
			labels[i] = plot.Tick{Value: y, Label: row.label()}
			if ratio := series.of(row).Ratio; ratio > 0 {
				points = append(points, plotter.XY{X: ratio, Y: y})
				least, most = min(least, ratio), max(most, ratio)
			}
		}
		scatter, err := plotter.NewScatter(points)
		if err != nil {
			return fmt.Errorf("chart: %w", err)
		}
		scatter.Shape, scatter.Color, scatter.Radius = series.shape, series.color, vg.Points(3)
		p.Add(scatter)
		p.Legend.Add(series.name, scatter)
	}
	p.X.Min, p.X.Max = least/1.1, most*1.1
	p.Y.Min, p.Y.Max = -1, float64(len(r.Rows))+2 // room for the legend
	p.Y.Tick.Marker = plot.ConstantTicks(labels)
	even, err := plotter.NewLine(plotter.XYs{{X: 1, Y: p.Y.Min}, {X: 1, Y: p.Y.Max}})
	if err != nil {
		return fmt.Errorf("chart: %w", err)
	}
	p.Add(even)
	return p.Save(22*vg.Centimeter, vg.Length(len(r.Rows)+8)*0.45*vg.Centimeter, file)
}

// label names the row in the chart by its differences from the default.
func (r *row) label() string {
	c := r.Settings
	s := fmt.Sprintf("%s ×%d", r.Workload, c.Pipeline)
	if c.Durability != "none" {
		s += ", " + c.Durability
	}
	if c.Conns != defaults.Conns {
		s += fmt.Sprintf(", %d connections", c.Conns)
	}
	if c.Size != defaults.Size {
		s += fmt.Sprintf(", %d bytes", c.Size)
	}
	if c.Keys != defaults.Keys {
		s += fmt.Sprintf(", %d keys", c.Keys)
	}
	if c.Zipf != 0 {
		s += fmt.Sprintf(", zipf %g", c.Zipf)
	}
	return s
}

// ratioTicks are the ticks of the axis.
type ratioTicks struct{}

// Ticks implements plot.Ticker.
func (ratioTicks) Ticks(least, most float64) (ticks []plot.Tick) {
	for v := 1.0 / 64; v <= most; v *= 2 {
		if v >= least {
			ticks = append(ticks, plot.Tick{Value: v, Label: fmt.Sprintf("%.3g", v)})
		}
	}
	return ticks
}
