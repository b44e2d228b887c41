//! Status codes, and refusals with their reasons.

use crate::Error;

/// A status code of HTTP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u16)]
#[expect(missing_docs, reason = "the names are those of RFC 9110 and RFC 4918")]
#[non_exhaustive]
pub enum Status {
    Ok = 200,
    Created = 201,
    NoContent = 204,
    PartialContent = 206,
    MultiStatus = 207,
    SeeOther = 303,
    NotModified = 304,
    BadRequest = 400,
    Unauthorized = 401,
    Forbidden = 403,
    NotFound = 404,
    MethodNotAllowed = 405,
    RequestTimeout = 408,
    Conflict = 409,
    LengthRequired = 411,
    PreconditionFailed = 412,
    ContentTooLarge = 413,
    UnsupportedMediaType = 415,
    RangeNotSatisfiable = 416,
    MisdirectedRequest = 421,
    Locked = 423,
    RequestHeadTooLarge = 431,
    InternalServerError = 500,
    NotImplemented = 501,
    ServiceUnavailable = 503,
    InsufficientStorage = 507,
}

impl Status {
    /// Returns the number.
    pub const fn code(self) -> u16 {
        self as u16
    }

    /// Returns the phrase of the status line.
    pub(crate) const fn phrase(self) -> &'static str {
        match self {
            Status::Ok => "OK",
            Status::Created => "Created",
            Status::NoContent => "No Content",
            Status::PartialContent => "Partial Content",
            Status::MultiStatus => "Multi-Status",
            Status::SeeOther => "See Other",
            Status::NotModified => "Not Modified",
            Status::BadRequest => "Bad Request",
            Status::Unauthorized => "Unauthorized",
            Status::Forbidden => "Forbidden",
            Status::NotFound => "Not Found",
            Status::MethodNotAllowed => "Method Not Allowed",
            Status::RequestTimeout => "Request Timeout",
            Status::Conflict => "Conflict",
            Status::LengthRequired => "Length Required",
            Status::PreconditionFailed => "Precondition Failed",
            Status::ContentTooLarge => "Content Too Large",
            Status::UnsupportedMediaType => "Unsupported Media Type",
            Status::RangeNotSatisfiable => "Range Not Satisfiable",
            Status::MisdirectedRequest => "Misdirected Request",
            Status::Locked => "Locked",
            Status::RequestHeadTooLarge => "Request Header Fields Too Large",
            Status::InternalServerError => "Internal Server Error",
            Status::NotImplemented => "Not Implemented",
            Status::ServiceUnavailable => "Service Unavailable",
            Status::InsufficientStorage => "Insufficient Storage",
        }
    }
}

/// A request that is not carried out, and the reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refused {
    /// Status of the response.
    pub status: Status,
    /// Sentence for the person who sent the request.
    pub reason: &'static str,
}

impl Refused {
    pub(crate) const fn new(status: Status, reason: &'static str) -> Refused {
        Refused { status, reason }
    }

    pub(crate) const fn bad(reason: &'static str) -> Refused {
        Refused::new(Status::BadRequest, reason)
    }
}

impl From<Error> for Refused {
    fn from(error: Error) -> Refused {
        let status = match error {
            Error::NotFound => Status::NotFound,
            Error::NotDirectory | Error::IsDirectory => Status::Conflict,
            Error::Exists | Error::NotEmpty | Error::Changed | Error::OtherCard => Status::Conflict,
            Error::Forbidden => Status::Forbidden,
            Error::Recording => Status::Locked,
            Error::Busy | Error::NoCard => Status::ServiceUnavailable,
            Error::Full => Status::InsufficientStorage,
            Error::TooLarge => Status::ContentTooLarge,
            Error::CardFailed => Status::InternalServerError,
            Error::NameInvalid | Error::TooLong => Status::BadRequest,
        };
        Refused::new(status, error.reason())
    }
}

/// End of an operation before its response was complete.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// The connection ended or was too slow.
    Closed,
    /// The request cannot be carried out.
    Refused(Refused),
}

impl From<Closed> for Fault {
    fn from(_: Closed) -> Fault {
        Fault::Closed
    }
}

impl From<Refused> for Fault {
    fn from(refused: Refused) -> Fault {
        Fault::Refused(refused)
    }
}

impl From<Error> for Fault {
    fn from(error: Error) -> Fault {
        Fault::Refused(error.into())
    }
}

/// The connection ended, failed, or was too slow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Closed;
