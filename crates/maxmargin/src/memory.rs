//! What the machine can be asked about memory. These are hints: where they are not taken, everything is as it would be
//! without them, only slower.

/// Hints that `place` will be read soon.
#[cfg(target_arch = "x86_64")]
#[allow(unsafe_code)]
#[inline]
pub(crate) fn prefetch<T>(place: &T) {
    use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
    // SAFETY: a hint reads nothing and never faults, and the address is that of a live reference.
    unsafe { _mm_prefetch::<_MM_HINT_T0>(std::ptr::from_ref(place).cast()) }
}

/// Other machines are not asked.
#[cfg(not(target_arch = "x86_64"))]
pub(crate) fn prefetch<T>(_place: &T) {}

/// Asks for large pages for a table that will be read here and there, so that the processor need not look up the place of
/// each small page. Best called before the table is filled.
#[cfg(target_os = "linux")]
#[allow(unsafe_code)]
pub(crate) fn large_pages<T>(table: &mut Vec<T>) {
    /// What an address must be a multiple of; 64 KB is the largest small page of any machine.
    const PAGE: usize = 64 << 10;
    /// Large pages have 2 MB: a table should have some.
    const LEAST: usize = 4 << 20;
    let bytes = table.spare_capacity_mut().len() * size_of::<T>() + size_of_val(table.as_slice());
    if bytes < LEAST {
        return;
    }
    let start = table.as_mut_ptr().cast::<u8>();
    let skipped = start.align_offset(PAGE);
    let whole = bytes.saturating_sub(skipped) / PAGE * PAGE;
    // SAFETY: the range lies within the vector's own allocation, and the advice changes no byte of it: it tells the kernel
    // only with pages of what size to back it. A refusal leaves things as they are.
    unsafe { libc::madvise(start.wrapping_add(skipped).cast(), whole, libc::MADV_HUGEPAGE) };
}

/// Other systems are not asked.
#[cfg(not(target_os = "linux"))]
pub(crate) fn large_pages<T>(_table: &mut Vec<T>) {}

/// Room for `len` items, in large pages.
pub(crate) fn room<T>(len: usize) -> Vec<T> {
    let mut room = Vec::with_capacity(len);
    large_pages(&mut room);
    room
}

/// `len` zeros, in large pages.
pub(crate) fn zeros(len: usize) -> Vec<f64> {
    let mut zeros = vec![0.0; len];
    large_pages(&mut zeros);
    zeros
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn large_pages_change_nothing() {
        for len in [0, 1, 1000, 524_287, 524_288, 1_600_003] {
            assert!(zeros(len).iter().all(|&x| x == 0.0) && zeros(len).len() == len);
            let mut numbers: Vec<usize> = (0..len).collect();
            large_pages(&mut numbers);
            assert!(numbers.iter().enumerate().all(|(at, &number)| at == number));
            let mut others = room(len);
            others.extend(0..len);
            prefetch(&others);
            assert_eq!(others, numbers);
        }
    }
}
