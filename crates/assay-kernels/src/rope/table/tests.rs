//! Table entries against 400-bit arithmetic (mpmath), and the errors of bad parameters.

use super::*;

const LLAMA: RopeParameters<'static> = RopeParameters {
    rotary_dims: 64,
    theta: 10_000.0,
    freq_factors: None,
    linear_scale: 1.0,
    num_positions: 8192,
};
const GEMMA: RopeParameters<'static> = RopeParameters {
    rotary_dims: 256,
    theta: 1e6,
    freq_factors: None,
    linear_scale: 8.0,
    num_positions: 2048,
};
const FACTORS: RopeParameters<'static> = RopeParameters {
    rotary_dims: 32,
    theta: 500_000.0,
    freq_factors: Some(&[
        1., 1., 1., 1., 1., 1., 1., 1., 1.5, 1.5, 1.5, 1.5, 8., 8., 8., 8.,
    ]),
    linear_scale: 1.0,
    num_positions: 131_072,
};
const PARTIAL: RopeParameters<'static> = RopeParameters {
    rotary_dims: 6,
    theta: 10_000.0,
    freq_factors: None,
    linear_scale: 1.0,
    num_positions: 16,
};

/// Parameters, position, pair, and the true cosine and sine rounded to f64.
#[rustfmt::skip]
const RECORDED: &[(RopeParameters<'static>, usize, usize, u64, u64)] = &[
    (LLAMA, 0, 0, 0x3FF0000000000000, 0x0000000000000000),
    (LLAMA, 0, 1, 0x3FF0000000000000, 0x0000000000000000),
    (LLAMA, 0, 16, 0x3FF0000000000000, 0x0000000000000000),
    (LLAMA, 0, 31, 0x3FF0000000000000, 0x0000000000000000),
    (LLAMA, 1, 0, 0x3FE14A280FB5068C, 0x3FEAED548F090CEE),
    (LLAMA, 1, 1, 0x3FE76A95FE716D1F, 0x3FE5CF59BFBFCA96),
    (LLAMA, 1, 16, 0x3FEFFF9724AD97AA, 0x3F847ACAE915E807),
    (LLAMA, 1, 31, 0x3FEFFFFFFB39F9C7, 0x3F217A8E2F3DC5B8),
    (LLAMA, 2, 0, 0xBFDAA22657537205, 0x3FED18F6EAD1B446),
    (LLAMA, 2, 1, 0x3FB229AA237CDB68, 0x3FEFEB5B2C04216C),
    (LLAMA, 2, 16, 0x3FEFFE5C95658D96, 0x3F947A87CDA55867),
    (LLAMA, 2, 31, 0x3FEFFFFFECE7E71E, 0x3F317A8E2CA24A3C),
    (LLAMA, 2730, 0, 0xBFEFF810CF9C7914, 0x3FA68766001833E7),
    (LLAMA, 2730, 1, 0x3FDC9E1F5E622F8F, 0xBFEC9F675E1F7BF6),
    (LLAMA, 2730, 16, 0xBFE1F99AB3EE27A1, 0x3FEA79785C840407),
    (LLAMA, 2730, 31, 0x3FEDE71CC4E6F409, 0x3FD6C9BC5FE3FFE7),
    (LLAMA, 8191, 0, 0xBFE4AF3B1102AC8B, 0xBFE86A8D36DCA1DB),
    (LLAMA, 8191, 1, 0xBFEAF199AFD06D4B, 0xBFE1437FCE6D4BD6),
    (LLAMA, 8191, 16, 0x3FEF2AE60B917450, 0x3FCD0167F0B96112),
    (LLAMA, 8191, 31, 0x3FDD781CCB4FB96A, 0x3FEC67E5197FE6CA),
    (GEMMA, 0, 0, 0x3FF0000000000000, 0x0000000000000000),
    (GEMMA, 0, 1, 0x3FF0000000000000, 0x0000000000000000),
    (GEMMA, 0, 64, 0x3FF0000000000000, 0x0000000000000000),
    (GEMMA, 0, 127, 0x3FF0000000000000, 0x0000000000000000),
    (GEMMA, 1, 0, 0x3FEFC015527D5BD3, 0x3FBFEAAEEE86EE36),
    (GEMMA, 1, 1, 0x3FEFCC7AEDE3D00B, 0x3FBCAA6E27AE5374),
    (GEMMA, 1, 64, 0x3FEFFFFFFBCE4218, 0x3F20624DD23A697D),
    (GEMMA, 1, 127, 0x3FEFFFFFFFFFFFA9, 0x3E82B07B364C5E68),
    (GEMMA, 2, 0, 0x3FEF01549F7DEEA1, 0x3FCFAAEED4F31577),
    (GEMMA, 2, 1, 0x3FEF32919C357106, 0x3FCC7C47538C22A6),
    (GEMMA, 2, 64, 0x3FEFFFFFEF390861, 0x3F30624DD014A800),
    (GEMMA, 2, 127, 0x3FEFFFFFFFFFFEA3, 0x3E92B07B364C5E35),
    (GEMMA, 682, 0, 0xBFED2076E99CEF6B, 0xBFDA81474CB19728),
    (GEMMA, 682, 1, 0x3FDB5441A176AEEE, 0x3FECEF8FABFEED11),
    (GEMMA, 682, 64, 0x3FEFE24005C44D3E, 0x3FB5CC2DE100CEC1),
    (GEMMA, 682, 127, 0x3FEFFFFFFD943F3D, 0x3F18E5141EB302C7),
    (GEMMA, 2047, 0, 0xBFC4FFCBF1A39F7A, 0xBFEF9101A445EC44),
    (GEMMA, 2047, 1, 0xBFEDF481B74BD62A, 0xBFD682F09A5C13BB),
    (GEMMA, 2047, 64, 0x3FEEF5495DE2B690, 0x3FD032A8DC58AE32),
    (GEMMA, 2047, 127, 0x3FEFFFFFEA30C503, 0x3F32AE2522A729D2),
    (FACTORS, 0, 0, 0x3FF0000000000000, 0x0000000000000000),
    (FACTORS, 0, 1, 0x3FF0000000000000, 0x0000000000000000),
    (FACTORS, 0, 8, 0x3FF0000000000000, 0x0000000000000000),
    (FACTORS, 0, 15, 0x3FF0000000000000, 0x0000000000000000),
    (FACTORS, 1, 0, 0x3FE14A280FB5068C, 0x3FEAED548F090CEE),
    (FACTORS, 1, 1, 0x3FECF272293DD49C, 0x3FDB4806AAC7C02B),
    (FACTORS, 1, 8, 0x3FEFFFFF11640674, 0x3F4EE4DAB3356338),
    (FACTORS, 1, 15, 0x3FEFFFFFFFFFFA55, 0x3EA30C94E0306A95),
    (FACTORS, 2, 0, 0xBFDAA22657537205, 0x3FED18F6EAD1B446),
    (FACTORS, 2, 1, 0x3FE45EE950E6829E, 0x3FE8ADB7DB9B0E44),
    (FACTORS, 2, 8, 0x3FEFFFFC459027B5, 0x3F5EE4D9CCD8B334),
    (FACTORS, 2, 15, 0x3FEFFFFFFFFFE952, 0x3EB30C94E0306735),
    (FACTORS, 43690, 0, 0xBFEFBBE5CCB1330A, 0x3FC07872198B0C2E),
    (FACTORS, 43690, 1, 0x3FEC078615F6631D, 0x3FDEE09CA9E44602),
    (FACTORS, 43690, 8, 0xBFEE0D97509FB20D, 0xBFD5FB9E24E5F8E1),
    (FACTORS, 43690, 15, 0x3FEFFD7AF35797DC, 0x3F996557C5DB087A),
    (FACTORS, 131071, 0, 0xBFEA2CEBBB513E7C, 0xBFE268613F60BABC),
    (FACTORS, 131071, 1, 0xBFD7BC693C05DCD2, 0x3FEDB7C53BC89EBE),
    (FACTORS, 131071, 8, 0xBFDFB03B1C513902, 0xBFEBCD5BC40E6F83),
    (FACTORS, 131071, 15, 0x3FEFE954D8DD2383, 0x3FB3080BA2C51458),
    (PARTIAL, 0, 0, 0x3FF0000000000000, 0x0000000000000000),
    (PARTIAL, 0, 1, 0x3FF0000000000000, 0x0000000000000000),
    (PARTIAL, 0, 2, 0x3FF0000000000000, 0x0000000000000000),
    (PARTIAL, 1, 0, 0x3FE14A280FB5068C, 0x3FEAED548F090CEE),
    (PARTIAL, 1, 1, 0x3FEFF72D512A28F4, 0x3FA7C1A396AE7F84),
    (PARTIAL, 1, 2, 0x3FEFFFFB22089148, 0x3F61A62C6C0E900D),
    (PARTIAL, 2, 0, 0xBFDAA22657537205, 0x3FED18F6EAD1B446),
    (PARTIAL, 2, 1, 0x3FEFDCBA222DAE8C, 0x3FB7BB16C53B9CF9),
    (PARTIAL, 2, 2, 0x3FEFFFEC8823C024, 0x3F71A629BCDCE809),
    (PARTIAL, 5, 0, 0x3FD22785706B4AD9, 0xBFEEAF81F5E09933),
    (PARTIAL, 5, 1, 0x3FEF245FD3420556, 0x3FCD70B232CFE5B5),
    (PARTIAL, 5, 2, 0x3FEFFF8653203693, 0x3F860F9CAF2A36D2),
    (PARTIAL, 15, 0, 0xBFE84F5D069CA4F3, 0x3FE4CF2871CEC2E8),
    (PARTIAL, 15, 1, 0x3FE88D6511CE82C4, 0x3FE485D32D36E879),
    (PARTIAL, 15, 2, 0x3FEFFBB901D1A3CC, 0x3FA08B0DC0314D4A),
];

/// Half a unit in the last place of an f32 below 1, plus the f64 error of an angle of up to 131,072.
const TOLERANCE: f64 = 3.0e-8 + 5e-11;

#[test]
fn entries_are_the_nearest_f32_of_the_true_values() {
    let mut made: Option<(RopeParameters<'_>, RopeTable)> = None;
    for &(parameters, position, pair, cos, sin) in RECORDED {
        let reuse = made
            .take()
            .filter(|(of, _)| of.num_positions == parameters.num_positions);
        let table = match reuse {
            Some((_, table)) => table,
            None => RopeTable::new(&parameters).expect("the parameters are in range"),
        };
        let (row_cos, row_sin) = table.row(position);
        for (name, got, want) in [("cos", row_cos[pair], cos), ("sin", row_sin[pair], sin)] {
            let want = f64::from_bits(want);
            let error = (f64::from(got) - want).abs();
            assert!(
                error <= TOLERANCE,
                "{name} of {parameters:?} at {position}, {pair}: {got}, expected {want}"
            );
        }
        made = Some((parameters, table));
    }
}

#[test]
fn the_hash_tells_tables_apart() {
    let table = RopeTable::new(&PARTIAL).expect("in range");
    let again = RopeTable::new(&PARTIAL).expect("in range");
    let other = RopeTable::new(&RopeParameters {
        theta: 10_001.0,
        ..PARTIAL
    })
    .expect("in range");
    assert_eq!(table.hash(), again.hash());
    assert_ne!(table.hash(), other.hash());
}

fn check_error(parameters: RopeParameters<'_>, expected: &RopeTableError) {
    let error = RopeTable::new(&parameters).expect_err("the parameters are out of range");
    assert_eq!(&error, expected);
}

#[test]
fn bad_parameters_are_named() {
    let factors = [1.0, 0.0, 1.0];
    check_error(
        RopeParameters {
            rotary_dims: 7,
            ..PARTIAL
        },
        &RopeTableError::OddRotaryDims(7),
    );
    check_error(
        RopeParameters {
            theta: 0.5,
            ..PARTIAL
        },
        &RopeTableError::Theta(0.5),
    );
    check_error(
        RopeParameters {
            theta: f64::INFINITY,
            ..PARTIAL
        },
        &RopeTableError::Theta(f64::INFINITY),
    );
    check_error(
        RopeParameters {
            linear_scale: 0.0,
            ..PARTIAL
        },
        &RopeTableError::LinearScale(0.0),
    );
    check_error(
        RopeParameters {
            freq_factors: Some(&factors[..2]),
            ..PARTIAL
        },
        &RopeTableError::NumFreqFactors {
            expected: 3,
            found: 2,
        },
    );
    check_error(
        RopeParameters {
            freq_factors: Some(&factors),
            ..PARTIAL
        },
        &RopeTableError::FreqFactor {
            index: 1,
            value: 0.0,
        },
    );
    check_error(
        RopeParameters {
            num_positions: 1 << 31,
            ..PARTIAL
        },
        &RopeTableError::Angle(2f64.powi(31)),
    );
    check_error(
        RopeParameters {
            num_positions: usize::MAX / 2,
            linear_scale: 1e300,
            ..PARTIAL
        },
        &RopeTableError::TooLarge {
            num_positions: usize::MAX / 2,
            num_pairs: 3,
        },
    );
}

#[test]
fn an_empty_table_is_fine() {
    let table = RopeTable::new(&RopeParameters {
        num_positions: 0,
        ..PARTIAL
    })
    .expect("in range");
    assert_eq!((table.num_positions(), table.rotary_dims()), (0, 6));
}
