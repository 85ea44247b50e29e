// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/device/cuda/headers/headertexts.h"

namespace klineage::gate::cuda::texts {

const char *const cstdint = R"(#pragma once
#include <stdint.h>
namespace std {
using ::int8_t;
using ::int16_t;
using ::int32_t;
using ::int64_t;
using ::uint8_t;
using ::uint16_t;
using ::uint32_t;
using ::uint64_t;
using ::int_fast32_t;
using ::int_fast64_t;
using ::uint_fast32_t;
using ::uint_fast64_t;
using ::int_least32_t;
using ::int_least64_t;
using ::uint_least32_t;
using ::uint_least64_t;
using ::intptr_t;
using ::uintptr_t;
using ::intmax_t;
using ::uintmax_t;
}
)";

const char *const cstddef = R"(#pragma once
#include <stddef.h>
namespace std {
using ::ptrdiff_t;
using ::size_t;
using nullptr_t = decltype(nullptr);
using max_align_t = long double;
enum class byte : unsigned char {};
}
)";

const char *const cmath = R"(#pragma once
#include <math.h>
namespace std {
using ::abs;
using ::acos;
using ::acosh;
using ::asin;
using ::asinh;
using ::atan;
using ::atan2;
using ::atanh;
using ::cbrt;
using ::ceil;
using ::copysign;
using ::cos;
using ::cosh;
using ::erf;
using ::erfc;
using ::exp;
using ::exp2;
using ::expm1;
using ::fabs;
using ::fdim;
using ::floor;
using ::fma;
using ::fmax;
using ::fmin;
using ::fmod;
using ::frexp;
using ::hypot;
using ::ilogb;
using ::isfinite;
using ::isinf;
using ::isnan;
using ::ldexp;
using ::lgamma;
using ::log;
using ::log10;
using ::log1p;
using ::log2;
using ::logb;
using ::lrint;
using ::lround;
using ::modf;
using ::nearbyint;
using ::nextafter;
using ::pow;
using ::remainder;
using ::rint;
using ::round;
using ::scalbn;
using ::signbit;
using ::sin;
using ::sinh;
using ::sqrt;
using ::tan;
using ::tanh;
using ::tgamma;
using ::trunc;
}
)";

const char *const cstring = R"(#pragma once
namespace std {
using ::memcpy;
using ::memset;
using ::size_t;
}
)";

const char *const cstdio = R"(#pragma once
namespace std {
using ::printf;
using ::size_t;
}
)";

const char *const cstdlib = R"(#pragma once
#include <stddef.h>
namespace std {
using ::abs;
using ::free;
using ::malloc;
using ::size_t;
}
)";

const char *const limits = R"(#pragma once
#include <float.h>
#include <limits.h>
namespace std {
template <class T> struct numeric_limits {
    static constexpr bool is_specialized = false;
};
template <class T> struct numeric_limits<const T> : numeric_limits<T> {};
#define KLINEAGE_INTEGER_LIMITS(T, LOW, HIGH, DIGITS, SIGNED)                  \
    template <> struct numeric_limits<T> {                                     \
        static constexpr bool is_specialized = true;                           \
        static constexpr bool is_signed = SIGNED;                              \
        static constexpr bool is_integer = true;                               \
        static constexpr bool is_exact = true;                                 \
        static constexpr bool has_infinity = false;                            \
        static constexpr bool has_quiet_NaN = false;                           \
        static constexpr int radix = 2;                                        \
        static constexpr int digits = DIGITS;                                  \
        static constexpr int digits10 = DIGITS * 643 / 2136;                   \
        __host__ __device__ static constexpr T min() noexcept { return LOW; }  \
        __host__ __device__ static constexpr T lowest() noexcept { return LOW; } \
        __host__ __device__ static constexpr T max() noexcept { return HIGH; } \
        __host__ __device__ static constexpr T epsilon() noexcept { return 0; } \
    };
KLINEAGE_INTEGER_LIMITS(bool, false, true, 1, false)
KLINEAGE_INTEGER_LIMITS(char, CHAR_MIN, CHAR_MAX, 7, true)
KLINEAGE_INTEGER_LIMITS(signed char, SCHAR_MIN, SCHAR_MAX, 7, true)
KLINEAGE_INTEGER_LIMITS(unsigned char, 0, UCHAR_MAX, 8, false)
KLINEAGE_INTEGER_LIMITS(short, SHRT_MIN, SHRT_MAX, 15, true)
KLINEAGE_INTEGER_LIMITS(unsigned short, 0, USHRT_MAX, 16, false)
KLINEAGE_INTEGER_LIMITS(int, INT_MIN, INT_MAX, 31, true)
KLINEAGE_INTEGER_LIMITS(unsigned int, 0, UINT_MAX, 32, false)
KLINEAGE_INTEGER_LIMITS(long, LONG_MIN, LONG_MAX, 63, true)
KLINEAGE_INTEGER_LIMITS(unsigned long, 0, ULONG_MAX, 64, false)
KLINEAGE_INTEGER_LIMITS(long long, LLONG_MIN, LLONG_MAX, 63, true)
KLINEAGE_INTEGER_LIMITS(unsigned long long, 0, ULLONG_MAX, 64, false)
#undef KLINEAGE_INTEGER_LIMITS
#define KLINEAGE_FLOAT_LIMITS(T, PREFIX, INF, NOT)                              \
    template <> struct numeric_limits<T> {                                     \
        static constexpr bool is_specialized = true;                           \
        static constexpr bool is_signed = true;                                \
        static constexpr bool is_integer = false;                              \
        static constexpr bool is_exact = false;                                \
        static constexpr bool is_iec559 = true;                                \
        static constexpr bool has_infinity = true;                             \
        static constexpr bool has_quiet_NaN = true;                            \
        static constexpr int radix = 2;                                        \
        static constexpr int digits = PREFIX##_MANT_DIG;                       \
        static constexpr int digits10 = PREFIX##_DIG;                          \
        static constexpr int min_exponent = PREFIX##_MIN_EXP;                  \
        static constexpr int max_exponent = PREFIX##_MAX_EXP;                  \
        __host__ __device__ static constexpr T min() noexcept { return PREFIX##_MIN; }     \
        __host__ __device__ static constexpr T lowest() noexcept { return -PREFIX##_MAX; } \
        __host__ __device__ static constexpr T max() noexcept { return PREFIX##_MAX; }     \
        __host__ __device__ static constexpr T epsilon() noexcept { return PREFIX##_EPSILON; } \
        __host__ __device__ static constexpr T infinity() noexcept { return __builtin_bit_cast(T, INF); } \
        __host__ __device__ static constexpr T quiet_NaN() noexcept { return __builtin_bit_cast(T, NOT); }   \
    };
KLINEAGE_FLOAT_LIMITS(float, FLT, 0x7f800000u, 0x7fffffffu)
KLINEAGE_FLOAT_LIMITS(double, DBL, 0x7ff0000000000000ull, 0x7fffffffffffffffull)
#undef KLINEAGE_FLOAT_LIMITS
}
)";

const char *const typeTraits = R"(#pragma once
namespace std {
template <class T, T v> struct integral_constant {
    static constexpr T value = v;
    using value_type = T;
    using type = integral_constant;
    __host__ __device__ constexpr operator T() const noexcept { return v; }
    __host__ __device__ constexpr T operator()() const noexcept { return v; }
};
template <bool b> using bool_constant = integral_constant<bool, b>;
using true_type = bool_constant<true>;
using false_type = bool_constant<false>;
template <class T> struct type_identity { using type = T; };
template <bool b, class T = void> struct enable_if {};
template <class T> struct enable_if<true, T> { using type = T; };
template <bool b, class T = void> using enable_if_t = typename enable_if<b, T>::type;
template <bool b, class T, class F> struct conditional { using type = T; };
template <class T, class F> struct conditional<false, T, F> { using type = F; };
template <bool b, class T, class F> using conditional_t = typename conditional<b, T, F>::type;
template <class...> using void_t = void;
template <class T> struct remove_const { using type = T; };
template <class T> struct remove_const<const T> { using type = T; };
template <class T> struct remove_volatile { using type = T; };
template <class T> struct remove_volatile<volatile T> { using type = T; };
template <class T> struct remove_cv { using type = typename remove_const<typename remove_volatile<T>::type>::type; };
template <class T> struct remove_reference { using type = T; };
template <class T> struct remove_reference<T &> { using type = T; };
template <class T> struct remove_reference<T &&> { using type = T; };
template <class T> struct remove_pointer { using type = T; };
template <class T> struct remove_pointer<T *> { using type = T; };
template <class T> struct remove_pointer<T *const> { using type = T; };
template <class T> struct remove_extent { using type = T; };
template <class T> struct remove_extent<T[]> { using type = T; };
template <class T, size_t n> struct remove_extent<T[n]> { using type = T; };
template <class T> struct add_const { using type = const T; };
template <class T> struct add_pointer { using type = typename remove_reference<T>::type *; };
template <class T> struct add_lvalue_reference { using type = T &; };
template <class T> struct add_rvalue_reference { using type = T &&; };
template <class T> using remove_const_t = typename remove_const<T>::type;
template <class T> using remove_volatile_t = typename remove_volatile<T>::type;
template <class T> using remove_cv_t = typename remove_cv<T>::type;
template <class T> using remove_reference_t = typename remove_reference<T>::type;
template <class T> using remove_pointer_t = typename remove_pointer<T>::type;
template <class T> using remove_extent_t = typename remove_extent<T>::type;
template <class T> using remove_cvref_t = remove_cv_t<remove_reference_t<T>>;
template <class T> using add_const_t = typename add_const<T>::type;
template <class T> using add_pointer_t = typename add_pointer<T>::type;
template <class T> struct decay { using type = remove_cvref_t<T>; };
template <class T> using decay_t = typename decay<T>::type;
template <class T, class U> struct is_same : false_type {};
template <class T> struct is_same<T, T> : true_type {};
template <class T> struct is_const : false_type {};
template <class T> struct is_const<const T> : true_type {};
template <class T> struct is_reference : bool_constant<!is_same<T, remove_reference_t<T>>::value> {};
template <class T> struct is_lvalue_reference : false_type {};
template <class T> struct is_lvalue_reference<T &> : true_type {};
template <class T> struct is_pointer : bool_constant<!is_same<remove_cv_t<T>, remove_pointer_t<remove_cv_t<T>>>::value> {};
template <class T> struct is_array : bool_constant<!is_same<T, remove_extent_t<T>>::value> {};
template <class T> struct is_void : is_same<void, remove_cv_t<T>> {};
template <class T, class... Us> inline constexpr bool klineage_is_one_of = (is_same<T, Us>::value || ...);
template <class T> struct is_floating_point : bool_constant<klineage_is_one_of<remove_cv_t<T>, float, double, long double>> {};
template <class T> struct is_integral
    : bool_constant<klineage_is_one_of<remove_cv_t<T>, bool, char, signed char, unsigned char, wchar_t, char16_t, char32_t, short,
                                       unsigned short, int, unsigned int, long, unsigned long, long long, unsigned long long>> {};
template <class T> struct is_arithmetic : bool_constant<is_integral<T>::value || is_floating_point<T>::value> {};
template <class T> struct is_enum : bool_constant<__is_enum(T)> {};
template <class T> struct is_class : bool_constant<__is_class(T)> {};
template <class T> struct is_empty : bool_constant<__is_empty(T)> {};
template <class B, class D> struct is_base_of : bool_constant<__is_base_of(B, D)> {};
template <class F, class T> struct is_convertible : bool_constant<__is_convertible_to(F, T)> {};
template <class T> struct is_trivially_copyable : bool_constant<__is_trivially_copyable(T)> {};
template <class T, bool = is_arithmetic<T>::value> struct is_signed : false_type {};
template <class T> struct is_signed<T, true> : bool_constant<(T(-1) < T(0))> {};
template <class T, bool = is_arithmetic<T>::value> struct is_unsigned : false_type {};
template <class T> struct is_unsigned<T, true> : bool_constant<(T(0) < T(-1))> {};
template <class T> struct make_unsigned;
template <class T> struct make_signed;
#define KLINEAGE_SIGNS(T)                                                      \
    template <> struct make_unsigned<signed T> { using type = unsigned T; };   \
    template <> struct make_unsigned<unsigned T> { using type = unsigned T; }; \
    template <> struct make_signed<signed T> { using type = signed T; };       \
    template <> struct make_signed<unsigned T> { using type = signed T; };
KLINEAGE_SIGNS(char)
KLINEAGE_SIGNS(short)
KLINEAGE_SIGNS(int)
KLINEAGE_SIGNS(long)
KLINEAGE_SIGNS(long long)
#undef KLINEAGE_SIGNS
template <class T> using make_unsigned_t = typename make_unsigned<T>::type;
template <class T> using make_signed_t = typename make_signed<T>::type;
template <class T> struct underlying_type { using type = __underlying_type(T); };
template <class T> using underlying_type_t = typename underlying_type<T>::type;
template <class T, class U> inline constexpr bool is_same_v = is_same<T, U>::value;
template <class T> inline constexpr bool is_const_v = is_const<T>::value;
template <class T> inline constexpr bool is_reference_v = is_reference<T>::value;
template <class T> inline constexpr bool is_pointer_v = is_pointer<T>::value;
template <class T> inline constexpr bool is_array_v = is_array<T>::value;
template <class T> inline constexpr bool is_void_v = is_void<T>::value;
template <class T> inline constexpr bool is_floating_point_v = is_floating_point<T>::value;
template <class T> inline constexpr bool is_integral_v = is_integral<T>::value;
template <class T> inline constexpr bool is_arithmetic_v = is_arithmetic<T>::value;
template <class T> inline constexpr bool is_enum_v = is_enum<T>::value;
template <class T> inline constexpr bool is_class_v = is_class<T>::value;
template <class T> inline constexpr bool is_empty_v = is_empty<T>::value;
template <class T> inline constexpr bool is_signed_v = is_signed<T>::value;
template <class T> inline constexpr bool is_unsigned_v = is_unsigned<T>::value;
template <class B, class D> inline constexpr bool is_base_of_v = is_base_of<B, D>::value;
template <class F, class T> inline constexpr bool is_convertible_v = is_convertible<F, T>::value;
template <class T> inline constexpr bool is_trivially_copyable_v = is_trivially_copyable<T>::value;
}
)";

// move() and forward() are NVRTC's own.
const char *const utility = R"(#pragma once
#include <type_traits>
namespace std {
template <class T> __host__ __device__ T &&declval() noexcept;
template <class T> __host__ __device__ constexpr void swap(T &a, T &b)
{
    T kept = static_cast<T &&>(a);
    a = static_cast<T &&>(b);
    b = static_cast<T &&>(kept);
}
template <class T, class U = T> __host__ __device__ constexpr T exchange(T &value, U &&with)
{
    T kept = static_cast<T &&>(value);
    value = static_cast<U &&>(with);
    return kept;
}
template <class A, class B> struct pair {
    using first_type = A;
    using second_type = B;
    A first;
    B second;
};
template <class A, class B> pair(A, B) -> pair<A, B>;
template <class A, class B> __host__ __device__ constexpr pair<decay_t<A>, decay_t<B>> make_pair(A &&a, B &&b)
{
    return {static_cast<A &&>(a), static_cast<B &&>(b)};
}
template <class T, T... values> struct integer_sequence {
    using value_type = T;
    __host__ __device__ static constexpr size_t size() noexcept { return sizeof...(values); }
};
template <size_t... values> using index_sequence = integer_sequence<size_t, values...>;
template <class T, size_t n, T... values> struct klineage_count_up : klineage_count_up<T, n - 1, T(n - 1), values...> {};
template <class T, T... values> struct klineage_count_up<T, 0, values...> { using type = integer_sequence<T, values...>; };
template <class T, T n> using make_integer_sequence = typename klineage_count_up<T, size_t(n)>::type;
template <size_t n> using make_index_sequence = make_integer_sequence<size_t, n>;
}
)";

const char *const algorithm = R"(#pragma once
#include <utility>
namespace std {
template <class T> __host__ __device__ constexpr const T &min(const T &a, const T &b) { return b < a ? b : a; }
template <class T> __host__ __device__ constexpr const T &max(const T &a, const T &b) { return a < b ? b : a; }
template <class T, class Less> __host__ __device__ constexpr const T &min(const T &a, const T &b, Less less)
{
    return less(b, a) ? b : a;
}
template <class T, class Less> __host__ __device__ constexpr const T &max(const T &a, const T &b, Less less)
{
    return less(a, b) ? b : a;
}
template <class T> __host__ __device__ constexpr const T &clamp(const T &value, const T &low, const T &high)
{
    return value < low ? low : high < value ? high : value;
}
template <class It, class T> __host__ __device__ constexpr void fill(It begin, It end, const T &value)
{
    for (; begin != end; ++begin)
        *begin = value;
}
template <class It, class N, class T> __host__ __device__ constexpr It fill_n(It begin, N count, const T &value)
{
    for (; count > 0; --count, ++begin)
        *begin = value;
    return begin;
}
template <class It, class Out> __host__ __device__ constexpr Out copy(It begin, It end, Out to)
{
    for (; begin != end; ++begin, ++to)
        *to = *begin;
    return to;
}
template <class It, class T> __host__ __device__ constexpr It lower_bound(It begin, It end, const T &value)
{
    while (begin < end) {
        const It middle = begin + (end - begin) / 2;
        if (*middle < value)
            begin = middle + 1;
        else
            end = middle;
    }
    return begin;
}
template <class It, class T> __host__ __device__ constexpr It upper_bound(It begin, It end, const T &value)
{
    while (begin < end) {
        const It middle = begin + (end - begin) / 2;
        if (value < *middle)
            end = middle;
        else
            begin = middle + 1;
    }
    return begin;
}
}
)";

} // namespace klineage::gate::cuda::texts
