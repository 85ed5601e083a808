//! The dashboard file. Pure.

use anyhow::{Context, Result, ensure};
use nodegate_plot::Unit;
use serde::Deserialize;
use serde_json::Value;

#[derive(Debug, Deserialize)]
pub(super) struct Dashboard {
    pub panels: Vec<Panel>,
    templating: Value,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Panel {
    pub title: String,
    /// The tooltip in Grafana.
    #[serde(default)]
    pub description: String,
    #[serde(rename = "type")]
    pub kind: Kind,
    pub grid_pos: Place,
    #[serde(default)]
    pub targets: Vec<Target>,
    #[serde(default)]
    field_config: Value,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Kind {
    /// The title of a row of panels.
    Row,
    /// A single current value.
    Stat,
    /// Curves over time.
    Timeseries,
    /// A band over time for each curve, coloured by the state that its value stands for.
    StateTimeline,
}

/// A state that a value stands for.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct State {
    pub value: f64,
    pub name: String,
}

/// A place in Grafana's grid of 24 columns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
pub(super) struct Place {
    /// The first column.
    pub x: u16,
    /// The first row.
    pub y: u16,
    /// The number of columns.
    pub w: u16,
    /// The number of rows.
    pub h: u16,
}

#[derive(Debug, Clone, Deserialize)]
pub(super) struct Target {
    expr: String,
    /// The name of its curves: text with labels in double braces.
    #[serde(rename = "legendFormat")]
    pub legend: String,
}

impl Dashboard {
    /// Parses the file.
    pub(super) fn read(text: &str) -> Result<Self> {
        serde_json::from_str(text).context("understanding the dashboard")
    }

    /// A query as Grafana sends it, with default variables and this rate interval.
    pub(super) fn expression(&self, target: &Target, rates: &str) -> Result<String> {
        let mut expression = target.expr.replace("$__rate_interval", rates);
        for variable in self.templating["list"].as_array().into_iter().flatten() {
            let current = &variable["current"]["value"];
            let value = match current.as_str() {
                Some("$__all") => &variable["allValue"],
                _ => current,
            };
            if let (Some(name), Some(value)) = (variable["name"].as_str(), value.as_str()) {
                expression = expression.replace(&format!("${name}"), value);
            }
        }
        ensure!(!expression.contains('$'), "a variable in {expression}");
        Ok(expression)
    }
}

impl Panel {
    /// What it says where there is nothing to show, in addition to that.
    pub(super) fn without_data(&self) -> &str {
        let text = self.field_config["defaults"]["noValue"].as_str();
        text.unwrap_or(&self.description)
    }

    /// The unit of its values.
    pub(super) fn unit(&self) -> Unit {
        match self.field_config["defaults"]["unit"].as_str() {
            Some("s") => Unit::Seconds,
            Some("ops") => Unit::PerSecond,
            _ => Unit::Plain,
        }
    }

    /// What its values stand for, ascending.
    pub(super) fn states(&self) -> Vec<State> {
        let mappings = self.field_config["defaults"]["mappings"].as_array();
        let options = mappings.into_iter().flatten();
        let options = options.filter_map(|mapping| mapping["options"].as_object());
        let state = |(value, option): (&String, &Value)| {
            Some(State {
                value: value.parse().ok()?,
                name: option["text"].as_str()?.to_owned(),
            })
        };
        let mut states: Vec<State> = options.flatten().filter_map(state).collect();
        states.sort_by(|a, b| a.value.total_cmp(&b.value));
        states
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// A dashboard with a row, a single value, a time series and a state timeline.
    pub(crate) fn dashboard() -> Dashboard {
        let text = r#"{
            "templating": {"list": [
                {"name": "datasource", "type": "datasource"},
                {"name": "rule", "allValue": ".*", "current": {"text": "All", "value": "$__all"}},
                {"name": "zone", "current": {"text": "a", "value": "a"}}
            ]},
            "panels": [
                {"type": "row", "title": "Overview", "gridPos": {"x": 0, "y": 0, "w": 24, "h": 1}, "panels": []},
                {"type": "stat", "title": "Longest held", "gridPos": {"x": 0, "y": 1, "w": 4, "h": 4},
                 "fieldConfig": {"defaults": {"unit": "s"}},
                 "targets": [{"expr": "max(held{rule=~\"$rule\"})", "legendFormat": "longest"}]},
                {"type": "timeseries", "title": "Taints", "description": "Per second.",
                 "gridPos": {"x": 0, "y": 5, "w": 8, "h": 8}, "fieldConfig": {"defaults": {"unit": "ops"}},
                 "targets": [{"expr": "rate(taints{rule=~\"$rule\",zone=\"$zone\"}[$__rate_interval])", "legendFormat": "{{rule}}"}]},
                {"type": "state-timeline", "title": "Zones", "gridPos": {"x": 8, "y": 5, "w": 16, "h": 8},
                 "fieldConfig": {"defaults": {"noValue": "No rule has limits", "mappings": [
                    {"type": "value", "options": {"1": {"text": "Partial"}, "0": {"text": "Normal"}}}]}},
                 "targets": [{"expr": "zones", "legendFormat": "{{zone}}"}]}
            ]
        }"#;
        Dashboard::read(text).unwrap_or_else(|error| panic!("{error:?}"))
    }

    #[test]
    fn variables_have_their_defaults() -> Result<()> {
        let dashboard = dashboard();
        let expressions = [1, 2].map(|panel: usize| {
            let target = &dashboard.panels[panel].targets[0];
            dashboard.expression(target, "8s")
        });
        let [held, taints] = expressions;
        assert_eq!(held?, r#"max(held{rule=~".*"})"#);
        assert_eq!(taints?, r#"rate(taints{rule=~".*",zone="a"}[8s])"#);
        let unknown = Target {
            expr: "held{pool=\"$pool\"}".to_owned(),
            legend: String::new(),
        };
        assert!(dashboard.expression(&unknown, "8s").is_err());
        Ok(())
    }

    #[test]
    fn panels_have_kinds_and_units() {
        let panels = dashboard().panels;
        let seen: Vec<_> = panels
            .iter()
            .map(|panel| (panel.kind, panel.unit()))
            .collect();
        let expected = [
            (Kind::Row, Unit::Plain),
            (Kind::Stat, Unit::Seconds),
            (Kind::Timeseries, Unit::PerSecond),
            (Kind::StateTimeline, Unit::Plain),
        ];
        assert_eq!(seen, expected);
        let states = panels[3].states();
        let states: Vec<_> = states.iter().map(|it| (it.value, &*it.name)).collect();
        assert_eq!(states, [(0.0, "Normal"), (1.0, "Partial")]);
    }
}
