// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/device/worker/messages.h"

#include <array>
#include <concepts>
#include <map>
#include <optional>
#include <stdexcept>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>

namespace klineage::gate::protocol {

/// A member and its key on the wire. A type whose static member `fields` is a tuple of these is written and read by it.
template <typename Class, typename Value>
struct Field {
    constexpr Field(const char *theKey, Value Class::*theMember)
        : key(theKey)
        , member(theMember)
    {}
    const char *key;
    Value Class::*member;
};

template <typename T>
concept HasFields = requires
{
    T::fields;
};
template <typename T>
concept HasWriting = requires(const T &value)
{
    write(value);
};
template <typename T>
struct IsVector : std::false_type {};
template <typename T>
struct IsVector<std::vector<T>> : std::true_type {};
template <typename T>
struct IsArray : std::false_type {};
template <typename T, std::size_t size>
struct IsArray<std::array<T, size>> : std::true_type {};
template <typename T>
struct IsMap : std::false_type {};
template <typename T>
struct IsMap<std::map<std::string, T>> : std::true_type {};
template <typename T>
struct IsOptional : std::false_type {};
template <typename T>
struct IsOptional<std::optional<T>> : std::true_type {};

/// By its fields, by write(), or as nlohmann::json writes it. What is optional and not there has no key.
template <typename T>
[[nodiscard]] nlohmann::json encode(const T &value)
{
    if constexpr (HasFields<T>) {
        nlohmann::json out = nlohmann::json::object();
        const auto put = [&](const auto &field) {
            const auto &member = value.*field.member;
            if constexpr (IsOptional<std::decay_t<decltype(member)>>::value) {
                if (member)
                    out[field.key] = encode(*member);
            } else {
                out[field.key] = encode(member);
            }
        };
        std::apply([&](const auto &...field) { (put(field), ...); }, T::fields);
        return out;
    } else if constexpr (HasWriting<T>) {
        return write(value);
    } else if constexpr (IsVector<T>::value) {
        nlohmann::json out = nlohmann::json::array();
        for (const auto &entry : value)
            out.push_back(encode(entry));
        return out;
    } else {
        return value;
    }
}

/// A whole number that the type can hold. nlohmann::json converts any other number too, and what is out of range without a check.
template <typename Integer>
[[nodiscard]] Integer wholeNumber(const nlohmann::json &in)
{
    if (in.is_number_unsigned()) {
        if (const auto value = in.get<std::uint64_t>(); std::in_range<Integer>(value))
            return static_cast<Integer>(value);
    } else if (in.is_number_integer()) {
        if (const auto value = in.get<std::int64_t>(); std::in_range<Integer>(value))
            return static_cast<Integer>(value);
    }
    throw std::out_of_range("no whole number of the field's type");
}

/// Throws nlohmann::json::exception or std::exception on anything that is missing, of another kind or out of range.
template <typename T>
[[nodiscard]] T decode(const nlohmann::json &in)
{
    if constexpr (HasFields<T>) {
        T out{};
        const auto take = [&](const auto &field) {
            auto &member = out.*field.member;
            using Member = std::decay_t<decltype(member)>;
            if constexpr (IsOptional<Member>::value) {
                if (in.contains(field.key))
                    member = decode<typename Member::value_type>(in.at(field.key));
            } else {
                member = decode<Member>(in.at(field.key));
            }
        };
        std::apply([&](const auto &...field) { (take(field), ...); }, T::fields);
        return out;
    } else if constexpr (IsVector<T>::value) {
        T out;
        for (const nlohmann::json &entry : in)
            out.push_back(decode<typename T::value_type>(entry));
        return out;
    } else if constexpr (IsArray<T>::value) {
        T out{};
        for (std::size_t i = 0; i < out.size(); ++i)
            out[i] = decode<typename T::value_type>(in.at(i));
        return out;
    } else if constexpr (IsMap<T>::value) {
        T out;
        for (const auto &[key, value] : in.get_ref<const nlohmann::json::object_t &>())
            out[key] = decode<typename T::mapped_type>(value);
        return out;
    } else if constexpr (std::is_integral_v<T> && !std::is_same_v<T, bool>) {
        return wholeNumber<T>(in);
    } else {
        return in.get<T>();
    }
}

// Values with a form or with limits of their own, which write() writes.
template <>
[[nodiscard]] kernel::Bindings decode(const nlohmann::json &in);
template <>
[[nodiscard]] kernel::ResolvedPlan decode(const nlohmann::json &in);
template <>
[[nodiscard]] Environment decode(const nlohmann::json &in);
template <>
[[nodiscard]] std::vector<Metric> decode(const nlohmann::json &in); ///< finite, 2,048 at most
template <>
[[nodiscard]] std::vector<ListedInstruction> decode(
    const nlohmann::json &in); ///< not negative, 100,000 at most
template <>
[[nodiscard]] CompiledLaunch decode(
    const nlohmann::json &in); ///< limits: 1024 threads, 1 GiB, 1 MiB of scratch, 8 pointers
template <>
[[nodiscard]] CompileOutput decode(const nlohmann::json &in);
template <>
[[nodiscard]] std::vector<BufferSet> decode(const nlohmann::json &in);
template <>
[[nodiscard]] ReferenceCall decode(const nlohmann::json &in);
template <>
[[nodiscard]] FillSets decode(const nlohmann::json &in);
template <>
[[nodiscard]] Guards decode(const nlohmann::json &in);
template <>
[[nodiscard]] OutputSets decode(const nlohmann::json &in);
template <>
[[nodiscard]] std::vector<CopyRange> decode(const nlohmann::json &in);
template <>
[[nodiscard]] std::vector<std::vector<CopyRange>> decode(const nlohmann::json &in);
template <>
[[nodiscard]] TimedRun decode(const nlohmann::json &in);
template <>
[[nodiscard]] TimedSample decode(const nlohmann::json &in); ///< ns is positive, clockMhz not negative
template <>
[[nodiscard]] EnergyReading decode(const nlohmann::json &in); ///< all positive
template <>
[[nodiscard]] Error decode(const nlohmann::json &in);

} // namespace klineage::gate::protocol
