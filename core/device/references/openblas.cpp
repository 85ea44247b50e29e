// SPDX-License-Identifier: GPL-3.0-or-later
//
// OpenBLAS through its C interface, without its headers. Its worker threads spin for tens of milliseconds after a call and would
// take the cores from the candidate that is timed next; OPENBLAS_THREAD_TIMEOUT, which the supervisor sets for the worker, makes
// them sleep at once.
#include "core/device/references/cpureference.h"

#include <dlfcn.h>

namespace klineage::gate {

namespace {

constexpr int rowMajor = 101;
constexpr int noTranspose = 111;
constexpr int transpose = 112;

struct OpenBlas {
    void (*sgemm)(int order, int transA, int transB, int m, int n, int k, float alpha, const float *a,
                  int lda, const float *b, int ldb, float beta, float *c, int ldc) = nullptr;
    void (*setThreads)(int) = nullptr;
    const char *(*config)() = nullptr;
};

Result<OpenBlas> load()
{
    void *library = ::dlopen("libopenblas.so.0", RTLD_NOW | RTLD_LOCAL);
    if (!library)
        return fail(ErrorCode::Unavailable,
                    "Cannot load libopenblas.so.0: it is not installed. Install libopenblas0-pthread.");
    OpenBlas blas;
    blas.sgemm = reinterpret_cast<decltype(blas.sgemm)>(::dlsym(library, "cblas_sgemm"));
    blas.setThreads =
        reinterpret_cast<decltype(blas.setThreads)>(::dlsym(library, "openblas_set_num_threads"));
    blas.config = reinterpret_cast<decltype(blas.config)>(::dlsym(library, "openblas_get_config"));
    if (!blas.sgemm || !blas.setThreads || !blas.config)
        return fail(ErrorCode::Unavailable,
                    "Cannot use libopenblas.so.0: it lacks a function. Install libopenblas0-pthread.");
    return blas;
}

/// "OpenBLAS 0.3.21 DYNAMIC_ARCH …" -> "0.3.21".
std::string versionIn(const std::string &config)
{
    const auto begin = config.find_first_of("0123456789");
    if (begin == std::string::npos)
        return "of unknown version";
    return config.substr(begin, config.find_first_of(" \t", begin) - begin);
}

class Sgemm : public CpuReference
{
public:
    Sgemm(const OpenBlas &blas, int threads, int m, int n, int k, bool transposeB)
        : m_blas(blas)
        , m_threads(threads)
        , m_m(m)
        , m_n(n)
        , m_k(k)
        , m_transposeB(transposeB)
    {
        m_blas.setThreads(threads);
    }
    Status run(const HostBuffers &buffers) override
    {
        const auto *a = reinterpret_cast<const float *>(buffers.at("a"));
        const auto *b = reinterpret_cast<const float *>(buffers.at("b"));
        auto *out = reinterpret_cast<float *>(buffers.at("out"));
        m_blas.sgemm(rowMajor, noTranspose, m_transposeB ? transpose : noTranspose, m_m, m_n, m_k, 1.0f, a,
                     m_k, b, m_transposeB ? m_k : m_n, 0.0f, out, m_n);
        return {};
    }
    std::string version() const override
    {
        return "openblas " + versionIn(m_blas.config()) + " (" + std::to_string(m_threads) + " threads)";
    }

private:
    OpenBlas m_blas;
    int m_threads;
    int m_m;
    int m_n;
    int m_k;
    bool m_transposeB;
};

} // namespace

Result<std::unique_ptr<CpuReference>> makeOpenBlasReference(const ReferenceCall &call, int threads)
{
    if (call.op != "sgemm_nn" && call.op != "sgemm_nt")
        return fail(ErrorCode::InvalidInput,
                    "Cannot call openblas: it has no \"" + call.op + "\"; expected sgemm_nn or sgemm_nt.");
    if (auto roles = requireRoles(call, {"a", "b", "out"}); !roles)
        return tl::unexpected(roles.error());
    const auto m = sizeOf(call, "m");
    const auto n = sizeOf(call, "n");
    const auto k = sizeOf(call, "k");
    for (const auto *size : {&m, &n, &k}) {
        if (!*size)
            return tl::unexpected(size->error());
    }
    const auto blas = load();
    if (!blas)
        return tl::unexpected(blas.error());
    return std::make_unique<Sgemm>(*blas, threads, static_cast<int>(*m), static_cast<int>(*n),
                                   static_cast<int>(*k), call.op == "sgemm_nt");
}

} // namespace klineage::gate
