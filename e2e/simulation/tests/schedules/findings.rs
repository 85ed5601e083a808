//! Bugs that the simulation has found, each as the smallest schedule that showed it, as the simulation prints it. Changing a
//! scenario changes what its seeds mean: then its findings must be searched again.

use nodegate_simulation::sim::script::Script;

#[test]
fn past_findings_stay_fixed() {
    let (mut broken, mut what) = (Vec::new(), "");
    for line in include_str!("findings.txt").lines() {
        if let Some(comment) = line.strip_prefix("# ") {
            what = comment;
            continue;
        }
        let script: Script = line.parse().unwrap();
        if let Some(violation) = script.run(false).violation {
            broken.push(format!("{what}: {violation:?}\n{script}"));
        }
    }
    assert!(broken.is_empty(), "{}", broken.join("\n\n"));
}
