// SPDX-License-Identifier: GPL-3.0-or-later
//
// A blocked matrix product in double. The inputs are floats (bf16 and fp16 are exact in them), so their products are exact in
// double and only the sums round. A job owns a tile of the output; for each slice of k it packs the rows of `a` six by six and the
// columns of `b` eight by eight as doubles, and a 6×8 kernel keeps its sums in registers: twelve AVX2 or six AVX-512 of them.
#include "core/gate/check/matmul.h"

#include "core/base/vectorclones.h"
#include "core/gate/check/parallel.h"

#include <cstring>

namespace klineage::gate {

namespace {

constexpr std::size_t tileRows = 6;
constexpr std::size_t tileColumns = 8;
constexpr std::size_t sliceLength = 512;
constexpr std::size_t jobRows = 16 * tileRows;
constexpr std::size_t jobColumns = 64 * tileColumns;

typedef double Lanes __attribute__((vector_size(tileColumns * sizeof(double)), aligned(8)));

/// c[6][8] += packedA[slice][6] · packedB[slice][8]; c has a row stride of tileColumns.
KLINEAGE_VECTOR_CLONES
void multiplyTile(const double *packedA, const double *packedB, std::size_t slice, double *c)
{
    Lanes sums[tileRows];
    for (std::size_t r = 0; r < tileRows; ++r)
        sums[r] = Lanes{};
    for (std::size_t k = 0; k < slice; ++k) {
        const Lanes column = *reinterpret_cast<const Lanes *>(packedB + k * tileColumns);
        const double *row = packedA + k * tileRows;
        sums[0] += row[0] * column;
        sums[1] += row[1] * column;
        sums[2] += row[2] * column;
        sums[3] += row[3] * column;
        sums[4] += row[4] * column;
        sums[5] += row[5] * column;
    }
    for (std::size_t r = 0; r < tileRows; ++r)
        *reinterpret_cast<Lanes *>(c + r * tileColumns) += sums[r];
}

template <typename A>
struct Problem {
    std::span<const A> a;
    std::span<const float> b;
    std::size_t m, n, k;
    bool transposeB;
    double *out;
};

/// Rows past the end are packed as zeros and never stored.
template <typename A>
void packRows(const Problem<A> &p, std::size_t row, std::size_t k0, std::size_t slice, double *packed)
{
    for (std::size_t r = 0; r < tileRows; ++r) {
        const A *source = row + r < p.m ? p.a.data() + (row + r) * p.k + k0 : nullptr;
        for (std::size_t k = 0; k < slice; ++k)
            packed[k * tileRows + r] = source ? static_cast<double>(source[k]) : 0.0;
    }
}

template <typename A>
void packColumns(const Problem<A> &p, std::size_t column, std::size_t k0, std::size_t slice, double *packed)
{
    const std::size_t valid = std::min(tileColumns, p.n - column);
    if (valid < tileColumns)
        std::memset(packed, 0, slice * tileColumns * sizeof(double));
    if (p.transposeB) {
        for (std::size_t c = 0; c < valid; ++c) {
            const float *source = p.b.data() + (column + c) * p.k + k0;
            for (std::size_t k = 0; k < slice; ++k)
                packed[k * tileColumns + c] = static_cast<double>(source[k]);
        }
        return;
    }
    for (std::size_t k = 0; k < slice; ++k) {
        const float *source = p.b.data() + (k0 + k) * p.n + column;
        for (std::size_t c = 0; c < valid; ++c)
            packed[k * tileColumns + c] = static_cast<double>(source[c]);
    }
}

template <typename A>
void addTile(const Problem<A> &p, std::size_t row, std::size_t column, const double *tile)
{
    const std::size_t rows = std::min(tileRows, p.m - row);
    const std::size_t columns = std::min(tileColumns, p.n - column);
    for (std::size_t r = 0; r < rows; ++r) {
        for (std::size_t c = 0; c < columns; ++c)
            p.out[(row + r) * p.n + column + c] += tile[r * tileColumns + c];
    }
}

template <typename A>
void computeJob(const Problem<A> &p, std::size_t row0, std::size_t column0)
{
    const std::size_t rowEnd = std::min(p.m, row0 + jobRows);
    const std::size_t columnEnd = std::min(p.n, column0 + jobColumns);
    std::vector<double> packedA(jobRows * sliceLength);
    std::vector<double> packedB(tileColumns * sliceLength);
    for (std::size_t k0 = 0; k0 < p.k; k0 += sliceLength) {
        const std::size_t slice = std::min(sliceLength, p.k - k0);
        for (std::size_t row = row0; row < rowEnd; row += tileRows)
            packRows(p, row, k0, slice, packedA.data() + (row - row0) * sliceLength);
        for (std::size_t column = column0; column < columnEnd; column += tileColumns) {
            packColumns(p, column, k0, slice, packedB.data());
            for (std::size_t row = row0; row < rowEnd; row += tileRows) {
                double tile[tileRows * tileColumns] = {};
                multiplyTile(packedA.data() + (row - row0) * sliceLength, packedB.data(), slice, tile);
                addTile(p, row, column, tile);
            }
        }
    }
}

template <typename A>
std::vector<double> multiply(const Problem<A> &sizes)
{
    Problem<A> problem = sizes;
    std::vector<double> out(problem.m * problem.n, 0.0);
    problem.out = out.data();
    const std::size_t across = (problem.n + jobColumns - 1) / jobColumns;
    const std::size_t down = (problem.m + jobRows - 1) / jobRows;
    parallelFor(across * down, [&](std::size_t job) {
        computeJob(problem, job / across * jobRows, job % across * jobColumns);
    });
    return out;
}

} // namespace

std::vector<double> matmul(std::span<const float> a, std::span<const float> b, std::size_t m, std::size_t n,
                           std::size_t k, bool transposeB)
{
    return multiply(Problem<float>{a, b, m, n, k, transposeB, nullptr});
}

std::vector<double> matmul(std::span<const double> a, std::span<const float> b, std::size_t m, std::size_t n,
                           std::size_t k)
{
    return multiply(Problem<double>{a, b, m, n, k, false, nullptr});
}

} // namespace klineage::gate
