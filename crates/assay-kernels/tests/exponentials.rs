//! Accuracy of EXP, EXP64 and LN64, against values that `tools/record_exponentials.py` recorded to 100 digits and,
//! for EXP, against EXP64 on a dense sample.

use assay_kernels::exp::exp;
use assay_kernels::exp64::{exp64, ln64};

const RECORDED: &str = include_str!("data/exponentials.txt");

/// Distance from `got` to `high + low` in units of the last place that `high` has in a format of `digits` bits.
fn ulps(got: f64, high: f64, low: f64, digits: i32) -> f64 {
    let exponent = ((high.abs().to_bits() >> 52) as i32 - 1023).max(-1022);
    let scale = -f64::from(exponent - digits + 1);
    // Two factors, since the scale of a tiny result overflows.
    ((got - high) - low).abs() * (scale / 2.0).floor().exp2() * (scale / 2.0).ceil().exp2()
}

fn check_recorded(op: &str, digits: i32, bound: f64, run: impl Fn(f64) -> f64) {
    let mut count = 0;
    for line in RECORDED
        .lines()
        .filter(|line| line.split(' ').next() == Some(op))
    {
        let bits: Vec<f64> = line
            .split(' ')
            .skip(1)
            .map(|field| f64::from_bits(u64::from_str_radix(field, 16).expect("hexadecimal")))
            .collect();
        let [x, high, low] = bits[..] else {
            panic!("three numbers in {line}")
        };
        let got = run(x);
        let error = ulps(got, high, low, digits);
        assert!(
            error <= bound,
            "{op}({x:e}) = {got:e}, true {high:e}: {error} ulp"
        );
        count += 1;
    }
    assert!(count > 300, "{count} recorded values of {op}");
}

#[test]
fn exp_is_within_its_bound() {
    check_recorded("exp", 24, 1.01, |x| f64::from(exp(x as f32)));
}

#[test]
fn exp64_is_within_one_ulp() {
    check_recorded("exp64", 53, 1.0, exp64);
}

#[test]
fn ln64_is_within_one_ulp() {
    check_recorded("ln64", 53, 1.0, ln64);
}

#[test]
fn exp_is_within_its_bound_on_a_dense_sample() {
    let mut worst = (0.0, 0.0);
    for bits in (0..=u32::MAX).step_by(1_021) {
        let x = f32::from_bits(bits);
        if (-87.0..=88.0).contains(&x) {
            let error = ulps(f64::from(exp(x)), exp64(f64::from(x)), 0.0, 24);
            worst = if error > worst.0 { (error, x) } else { worst };
        }
    }
    assert!(worst.0 <= 1.01, "exp({:e}) is {} ulp off", worst.1, worst.0);
    assert!(
        worst.0 > 0.5,
        "no rounding at all is not to be believed: {}",
        worst.0
    );
}

#[test]
fn ends_of_the_domains() {
    assert_eq!(exp(-87.000_01).to_bits(), 0);
    assert!(exp(-87.0) > f32::MIN_POSITIVE);
    assert_eq!(exp(f32::NEG_INFINITY).to_bits(), 0);
    assert_eq!(exp(88.000_01), f32::INFINITY);
    assert!(exp(88.0).is_finite());
    assert_eq!((exp(0.0), exp(-0.0)), (1.0, 1.0));
    assert!(exp(f32::from_bits(0xFFC1_2345)).is_nan());
    assert_eq!(exp64(-708.000_000_1).to_bits(), 0);
    assert!(exp64(-708.0) > f64::MIN_POSITIVE);
    assert_eq!(exp64(f64::NEG_INFINITY).to_bits(), 0);
    assert_eq!(exp64(709.1), f64::INFINITY);
    assert_eq!((exp64(0.0), exp64(-0.0)), (1.0, 1.0));
    assert!(exp64(f64::NAN).is_nan());
    assert_eq!(ln64(1.0).to_bits(), 0);
    assert_eq!(
        (ln64(0.0), ln64(-0.0)),
        (f64::NEG_INFINITY, f64::NEG_INFINITY)
    );
    assert_eq!(ln64(f64::INFINITY), f64::INFINITY);
    assert!(ln64(-1.0).is_nan() && ln64(f64::NAN).is_nan() && ln64(f64::NEG_INFINITY).is_nan());
}

#[test]
fn the_f64_logarithm_undoes_the_exponential() {
    for i in 0..7_000 {
        let x = f64::from(i) * -0.1;
        let error = (ln64(exp64(x)) - x).abs();
        assert!(
            error <= x.abs().max(1.0) * 2.5e-16,
            "ln64(exp64({x})) is {error:e} off"
        );
    }
}
