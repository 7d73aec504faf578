//! `G(age) = age / (age + h)`: the share of a post's final engagement that is there by that age.
//!
//! It rises from 0 at creation towards 1, with half of all after `h`, 80 minutes, and 95% after
//! a day, as impressions of tweets (Pfeffer et al., ICWSM 2023). It is the same for all posts: a
//! learned curve would bring little (`docs/refresh.md`).

/// The share that is there at an age, from 0 to 1.
pub fn share(age_ms: i64) -> f64 {
    let age_ms = (age_ms as f64).max(0.0);
    age_ms / (age_ms + HALF_LIFE_MS)
}

/// What waiting `wait_ms` costs after a refresh at that age, for a post whose final engagement
/// is 1, in hours: `W(s) = s m(s) - integral of m over [0, s]` with `m(s) = G(t+s) - G(t)`,
/// which is the integral of `s dG(t+s)`. It never falls as `s` grows.
///
/// The index of Avrachenkov & Borkar (arXiv 1503.08558) for content that loses interest with
/// its age, as [`super::ValuePolicy`] needs it. On this curve it is `h (y - 1 + exp(-y))`, where
/// `y = ln(1 + s / (t + h))`.
pub fn regret_h(age_ms: i64, wait_ms: i64) -> f64 {
    let waited = (wait_ms as f64).max(0.0) / from_origin_ms(age_ms);
    HALF_LIFE_MS / HOUR_MS * regret(waited.ln_1p())
}

/// The shortest wait after which [`regret_h`] is at least `wanted_h`, ms.
pub fn wait_ms(age_ms: i64, wanted_h: f64) -> i64 {
    let wanted = (wanted_h * HOUR_MS / HALF_LIFE_MS).min(MAX_REGRET);
    if wanted <= 0.0 {
        return 0;
    }
    // The regret is convex in `y`, and the start lies above the solution: Newton's steps stay above.
    let mut y = wanted + (2.0 * wanted).sqrt();
    for _ in 0..NEWTON_STEPS {
        y += (regret(y) - wanted) / (-y).exp_m1();
    }
    (from_origin_ms(age_ms) * y.exp_m1()).ceil() as i64
}

/// `y - 1 + exp(-y)`, exact where `y` is small too.
fn regret(y: f64) -> f64 {
    y + (-y).exp_m1()
}

fn from_origin_ms(age_ms: i64) -> f64 {
    (age_ms as f64).max(0.0) + HALF_LIFE_MS
}

/// The age at which half of a post's engagement is there.
const HALF_LIFE_MS: f64 = 80.0 * 60_000.0;
const HOUR_MS: f64 = 3_600_000.0;
/// In half-lives: no wait that ms can count is as long.
const MAX_REGRET: f64 = 100.0;
/// The start is off by less than 1, and each step squares what is left: this many reach a ms.
const NEWTON_STEPS: usize = 6;
