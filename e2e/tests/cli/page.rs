//! The report in a headless Chromium: in light and dark, and printed. Since it needs a browser, only `make nightly` runs it.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::{env, fs};

use anyhow::{Context, Result, ensure};
use nodegate_tests::has_words;

use crate::world::world;

/// The timeout of the browser for one page, in seconds.
const PATIENCE: &str = "120";
/// Names of Chromium's binary.
const NAMES: [&str; 4] = [
    "chromium",
    "chromium-browser",
    "google-chrome",
    "google-chrome-stable",
];
/// Sections that every report must have.
const SECTIONS: [&str; 3] = ["Status", "Held nodes", "Findings"];
/// The widths of a window, in pixels, that a report must fit: a desktop's and a phone's.
const WIDTHS: [u32; 2] = [1200, 400];

struct Browser {
    program: PathBuf,
    folder: PathBuf,
}

/// The result of opening a page.
struct Seen {
    /// The document after rendering.
    document: String,
    /// The lines on its console.
    console: Vec<String>,
    /// The requested URLs.
    requests: Vec<String>,
}

#[tokio::test]
#[ignore = "needs a browser: make nightly PARTS=programs"]
async fn a_report_is_read_in_light_and_dark_and_on_paper() -> Result<()> {
    let world = world().await?;
    let browser = Browser::find()?;
    browser.notices_what_a_page_must_not_do()?;
    let page = browser.folder.join("report.html");
    let file = page.display().to_string();
    let report = ["report", "--output-file", &file];
    world.asks(&report, 0).await?;
    let seen = browser.open(&page)?;
    ensure!(seen.console.is_empty(), "{:?}", seen.console);
    ensure!(seen.requests.is_empty(), "{:?}", seen.requests);
    for section in SECTIONS {
        let heading = format!("<h2>{section}</h2>");
        ensure!(seen.document.contains(&heading), "no {section}");
    }
    has_words(&seen.document, "<th>")?;
    for width in WIDTHS {
        let too_wide = browser.overflow(&page, width)?;
        ensure!(too_wide == "0", "{too_wide} px wider than {width} px");
    }

    let (light, dark) = (
        browser.picture(&page, "light")?,
        browser.picture(&page, "dark")?,
    );
    ensure!(
        fs::read(&light)? != fs::read(&dark)?,
        "light and dark look the same"
    );
    let paper = fs::read(browser.print(&page)?)?;
    ensure!(paper.starts_with(b"%PDF-"), "no PDF");
    let paper = String::from_utf8_lossy(&paper);
    let sheets = paper.matches("/Type /Page\n").count();
    ensure!((1..=6).contains(&sheets), "{sheets} sheets of paper");
    fs::remove_dir_all(&browser.folder)?;
    Ok(())
}

impl Browser {
    /// The browser in `BROWSER`, or an installed one.
    fn find() -> Result<Self> {
        let named = env::var_os("BROWSER").map(PathBuf::from);
        let path = env::var_os("PATH").unwrap_or_default();
        let mut installed = env::split_paths(&path)
            .flat_map(|folder| NAMES.map(|name| folder.join(name)))
            .filter(|program| program.is_file());
        let program = named.or_else(|| installed.next());
        let folder = env::temp_dir().join(format!("nodegate-page-{}", std::process::id()));
        fs::create_dir_all(&folder)?;
        Ok(Self {
            program: program.context("no browser: install Chromium, or name one in BROWSER")?,
            folder,
        })
    }

    /// Checks that the browser detects the problems that reports must not have.
    fn notices_what_a_page_must_not_do(&self) -> Result<()> {
        let page = self.folder.join("bad.html");
        let bad = "<!doctype html><title>bad</title><img src='http://192.0.2.1/x.png'>\
                   <script>console.error('a complaint')</script>";
        fs::write(&page, bad)?;
        let seen = self.open(&page)?;
        ensure!(
            !seen.console.is_empty() && !seen.requests.is_empty(),
            "the browser does not tell what pages do: {:?}, {:?}",
            seen.console,
            seen.requests
        );
        Ok(())
    }

    fn open(&self, page: &Path) -> Result<Seen> {
        let log = self.folder.join("network.json");
        let (document, told) = self.run(
            page,
            &[
                "--dump-dom",
                "--enable-logging=stderr",
                &format!("--log-net-log={}", log.display()),
            ],
        )?;
        let console = told.lines().filter(|line| line.contains("CONSOLE"));
        let network = fs::read_to_string(&log)?;
        let urls = network.split("\"url\":\"").skip(1);
        let urls = urls.filter_map(|it| it.split('"').next());
        // The browser's own requests to its vendor do not count.
        let of_page = |url: &&str| {
            let its_own = [
                "google.com",
                "googleapis.com/service",
                "gvt1.com",
                "file:",
                "data:",
            ];
            !its_own.iter().any(|it| url.contains(it))
        };
        Ok(Seen {
            document,
            console: console.map(str::to_owned).collect(),
            requests: urls.filter(of_page).map(str::to_owned).collect(),
        })
    }

    /// By how many pixels the page is wider than a window of this width.
    fn overflow(&self, page: &Path, width: u32) -> Result<String> {
        let frame = self.folder.join("frame.html");
        let page = page.display();
        let html = format!(
            "<!doctype html><iframe id=it width={width} height=800 src='file://{page}'></iframe><script>\
             it.onload = () => {{ const root = it.contentDocument.documentElement; \
             document.title = `over=${{root.scrollWidth - root.clientWidth}};`; }}</script>"
        );
        fs::write(&frame, html)?;
        let (document, _) = self.run(&frame, &["--dump-dom", "--allow-file-access-from-files"])?;
        let over = document.split_once("over=").context("not measured")?.1;
        Ok(over.split(';').next().unwrap_or_default().to_owned())
    }

    /// A picture of the page in this colour scheme.
    fn picture(&self, page: &Path, scheme: &str) -> Result<PathBuf> {
        let picture = self.folder.join(format!("{scheme}.png"));
        let preferred = usize::from(scheme == "light");
        self.run(
            page,
            &[
                &format!("--screenshot={}", picture.display()),
                &format!("--blink-settings=preferredColorScheme={preferred}"),
                "--window-size=960,1280",
                "--hide-scrollbars",
            ],
        )?;
        Ok(picture)
    }

    /// The page as a PDF.
    fn print(&self, page: &Path) -> Result<PathBuf> {
        let paper = self.folder.join("report.pdf");
        let print = format!("--print-to-pdf={}", paper.display());
        self.run(page, &[&print, "--no-pdf-header-footer"])?;
        Ok(paper)
    }

    /// Runs the browser on a page until it is done; returns its standard output and standard error.
    fn run(&self, page: &Path, arguments: &[&str]) -> Result<(String, String)> {
        // Its helpers may keep a pipe open, but no file.
        let (out, err) = (self.folder.join("out"), self.folder.join("err"));
        let status = Command::new("timeout")
            .arg(PATIENCE)
            .arg(&self.program)
            .args(["--headless", "--disable-gpu", "--no-first-run"])
            .args([
                "--disable-background-networking",
                "--disable-component-update",
            ])
            // It opens only this test's own page; as root there is no other way.
            .arg("--no-sandbox")
            .arg(format!(
                "--user-data-dir={}",
                self.folder.join("profile").display()
            ))
            .args(arguments)
            .arg(format!("file://{}", page.display()))
            .stdin(Stdio::null())
            .stdout(fs::File::create(&out)?)
            .stderr(fs::File::create(&err)?)
            .status()
            .with_context(|| format!("running {}", self.program.display()))?;
        let read = |file: &Path| fs::read(file).map(|it| String::from_utf8_lossy(&it).into_owned());
        let (out, err) = (read(&out)?, read(&err)?);
        ensure!(
            status.success(),
            "{}: {status}: {err}",
            self.program.display()
        );
        Ok((out, err))
    }
}
