//! The chart's metadata for those who list charts: Helm and Artifact Hub.

use anyhow::{Context, Result};
use serde_json::{Value, json};
use testkit::nodegate::helm::helm;
use testkit::nodegate::install::{chart, config, repository};

use crate::CRD;
use crate::rendered::template;

/// A placeholder for the repository, until a release sets it.
const HOME: &str = "https://example.com/nodegate";

fn described() -> Result<Value> {
    let text = std::fs::read_to_string(chart().join("Chart.yaml"))?;
    Ok(serde_saphyr::from_str(&text)?)
}

/// One of Artifact Hub's annotations, parsed as YAML.
fn annotation(chart: &Value, name: &str) -> Result<Value> {
    let text = chart["annotations"][format!("artifacthub.io/{name}")].as_str();
    Ok(serde_saphyr::from_str(
        text.with_context(|| name.to_owned())?,
    )?)
}

#[tokio::test]
async fn helm_finds_nothing_to_say_against_the_chart() -> Result<()> {
    let said = helm(&["lint", "--strict", &chart().to_string_lossy()]).await?;
    // Recommendations alone are no failure.
    assert!(!said.contains("[INFO]"), "{said}");
    Ok(())
}

#[test]
fn links_lead_to_files_of_the_repository() -> Result<()> {
    let chart = described()?;
    assert_eq!(chart["home"], HOME);
    assert_eq!(chart["sources"], json!([HOME]));
    let links = annotation(&chart, "links")?;
    let links = links.as_array().into_iter().flatten();
    let urls = links.map(|link| &link["url"]).chain([&chart["icon"]]);
    let mut files = 0;
    for url in urls {
        let path = url.as_str().and_then(|url| url.strip_prefix(HOME));
        let path = path.with_context(|| format!("{url} is elsewhere"))?;
        let file = path.split_once("/main/").map(|(_, file)| file);
        if let Some(file) = file {
            assert!(repository().join(file).is_file(), "there is no {file}");
            files += 1;
        }
    }
    assert_eq!(files, 3);
    Ok(())
}

#[tokio::test]
async fn the_charts_annotations_match_its_content() -> Result<()> {
    let chart = described()?;
    let version = env!("CARGO_PKG_VERSION");
    let prerelease = chart["annotations"]["artifacthub.io/prerelease"].as_str();
    assert_eq!(
        prerelease,
        Some(if version.contains('-') {
            "true"
        } else {
            "false"
        })
    );
    let images = annotation(&chart, "images")?;
    let image = images[0]["image"].as_str().context("no image")?;
    assert!(image.ends_with(&format!("/nodegate:{version}")), "{image}");

    let crds = annotation(&chart, "crds")?;
    let objects = template(&[]).await?;
    let definition = &objects[&format!("CustomResourceDefinition /{CRD}")]["spec"];
    assert_eq!(crds[0]["name"], CRD);
    assert_eq!(crds[0]["kind"], definition["names"]["kind"]);
    assert_eq!(crds[0]["version"], definition["versions"][0]["name"]);
    let sample = std::fs::read_to_string(config("samples/bootstrap-cni.yaml"))?;
    let sample: Value = serde_saphyr::from_str(&sample)?;
    assert_eq!(annotation(&chart, "crdsExamples")?, json!([sample]));
    Ok(())
}
